"""Answers requests of another app."""

from os_ken.base import app_manager
from os_ken.controller.handler import set_ev_cls
from questions import Answer, Question


class Answers(app_manager.OSKenApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.name = "answers"

    @set_ev_cls(Question)
    def answer(self, request):
        self.reply_to_request(request, Answer(request.src, f"{request.text}, for {request.src}"))
