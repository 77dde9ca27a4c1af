"""A client of REST. It holds each answer against the OpenAPI document that the controller serves."""

import json
import re
import urllib.error
import urllib.request

import jsonschema

LIMIT_S = 30


class RestClient:
    """Asks the controller at `base`. `token` is for the document, and for requests without one of their own."""

    def __init__(self, base, token=None, tls=None):
        self.base, self.token, self.tls = base, token, tls
        self._document = None

    @property
    def document(self):
        if self._document is None:
            status, _, text = self._send("/v1/openapi.json", "GET", None, self.token)
            if status != 200:
                raise AssertionError(f"no document: {status} {text}")
            self._document = json.loads(text)
        return self._document

    def ask(self, path, method="GET", body=None, token=None):
        """The status, and the body as JSON or text."""
        status, kind, text = self._send(path, method, body, token or self.token)
        answer = json.loads(text) if "json" in kind else text
        self._check(path, method, status, kind, answer)
        return status, answer

    def _send(self, path, method, body, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S, context=self.tls) as reply:
                return reply.status, reply.headers["Content-Type"] or "", reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"] or "", error.read().decode()

    def _check(self, path, method, status, kind, answer):
        about = f"{method} {path}: {status} {answer}"
        if status == 401 and self.token is None:
            # Without a token the document may not be had.
            if kind.partition(";")[0] != "application/problem+json" or answer["status"] != 401 or not answer["title"]:
                raise AssertionError(f"not a problem: {about}")
            return
        responses = self._operation(path.partition("?")[0], method)["responses"]
        response = responses.get(str(status)) or (responses.get("default") if status >= 400 else None)
        if response is None:
            raise AssertionError(f"the document has no such answer: {about}")
        contents = response.get("content", {})
        if not contents:
            return
        content = contents.get(kind.partition(";")[0])
        if content is None:
            raise AssertionError(f"the document has no answer of the type {kind}: {about}")
        if "json" in kind:
            schema = {**content["schema"], "components": self.document["components"]}
            jsonschema.Draft202012Validator(schema).validate(answer)

    def _operation(self, path, method):
        """The part of the document about a request. A path without parameters comes first."""
        for template in sorted(self.document["paths"], key=lambda template: template.count("{")):
            form = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
            if re.fullmatch(form, path) and method.lower() in self.document["paths"][template]:
                return self.document["paths"][template][method.lower()]
        raise AssertionError(f"the document has no {method} {path}")
