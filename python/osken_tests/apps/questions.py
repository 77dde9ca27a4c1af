"""No app: a request of one app to another, and the reply."""

from ryu.controller import event


class Question(event.EventRequestBase):
    def __init__(self, text):
        super().__init__()
        self.dst = "answers"
        self.text = text


class Answer(event.EventReplyBase):
    def __init__(self, dst, text):
        super().__init__(dst)
        self.text = text
