"""A server that speaks the part of the Hugging Face hub's protocol that we use, and can fail."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants, file_download

TOKEN = 'hf_' + 'x' * 34
COMMIT = '1' * 40


@dataclass
class Hub:
    """Repositories, and how the server fails.

    Attributes:
        repositories: Files by the name of their repository; all have one commit, on main.
        private: Repositories that only TOKEN may read.
        gated: Repositories that nobody may read without asking.
        fault: 'cut' breaks off files in the middle, 'wrong' changes a byte, 'down' answers 503.
        requests: Method and path of each request.
    """

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    fault: str = ''
    uploads: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def serve(hub: Hub) -> Iterator[str]:
    """Serve at a free port of this machine; yields the address."""

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    # shutdown() waits for a polling interval, by default half a second.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f'http://127.0.0.1:{server.server_port}'
    finally:
        server.shutdown()
        server.server_close()


def connect(monkeypatch: pytest.MonkeyPatch, address: str, cache: Path) -> None:
    """Set what `huggingface_hub` reads from the environment on import."""
    monkeypatch.setattr(constants, 'ENDPOINT', address)
    template = address + '/{repo_id}/resolve/{revision}/{filename}'
    monkeypatch.setattr(constants, 'HUGGINGFACE_CO_URL_TEMPLATE', template)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(cache))
    monkeypatch.setattr(constants, 'HF_HUB_DISABLE_XET', True)
    monkeypatch.setattr(file_download.time, 'sleep', lambda seconds: None)
    monkeypatch.delenv('HF_TOKEN', raising=False)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._file()

    def do_GET(self):
        path = self._begin()
        if path[:2] == ['api', 'models']:
            self._info('/'.join(path[2:4]), path[5] if len(path) > 4 else 'main')
        else:
            self._file()

    def do_PUT(self):
        self.hub.uploads[self._begin()[-1]] = self._body()
        self._send(200)

    def do_POST(self):
        path, body = self._begin(), self._body()
        if path == ['api', 'validate-yaml']:
            self._json(dict(errors=[], warnings=[]))
        elif self.headers.get('Authorization') != f'Bearer {TOKEN}':
            self._send(401)
        elif path == ['api', 'repos', 'create']:
            asked = json.loads(body)
            name = f'{asked.get("organization") or "me"}/{asked["name"]}'
            exists = name in self.hub.repositories
            self.hub.repositories.setdefault(name, {})
            address = f'{self._address()}/{name}'
            self._json(dict(url=address, name=name, id=name), 409 if exists else 200)
        elif path[4:5] == ['preupload']:
            files = [
                dict(
                    path=each['path'],
                    uploadMode='lfs' if each['path'].endswith('.safetensors') else 'regular',
                    shouldIgnore=False,
                )
                for each in json.loads(body)['files']
            ]
            self._json(dict(files=files))
        elif path[-2:] == ['objects', 'batch']:
            objects = [
                each | dict(actions=dict(upload=dict(href=f'{self._address()}/lfs/{each["oid"]}')))
                for each in json.loads(body)['objects']
            ]
            self._json(dict(transfer='basic', objects=objects))
        elif path[4:5] == ['commit']:
            self._commit('/'.join(path[2:4]), body)
        else:
            self._send(404)

    def _commit(self, name: str, body: bytes):
        if self.hub.fault == 'full':
            self._send(507)
            return
        files = self.hub.repositories[name]
        for line in map(json.loads, body.splitlines()):
            value = line['value']
            if line['key'] == 'file':
                files[value['path']] = base64.b64decode(value['content'])
            elif line['key'] == 'lfsFile':
                files[value['path']] = self.hub.uploads[value['oid']]
        self._json(dict(commitUrl=f'{self._address()}/{name}/commit/{COMMIT}', commitOid=COMMIT))

    def _info(self, name: str, revision: str):
        if self._may_read(name, revision):
            siblings = [dict(rfilename=file) for file in self.hub.repositories[name]]
            self._json(dict(id=name, modelId=name, sha=COMMIT, siblings=siblings, tags=[]))

    def _file(self):
        path = self._begin()
        name, revision, file = '/'.join(path[:2]), path[3], '/'.join(path[4:])
        if not self._may_read(name, revision):
            return
        content = self.hub.repositories[name].get(file)
        if content is None:
            self._refuse(404, 'EntryNotFound')
            return
        headers = {'ETag': f'"{hashlib.sha256(content).hexdigest()}"', 'X-Repo-Commit': COMMIT}
        if self.hub.fault == 'wrong':
            content = content[:-1] + bytes([content[-1] ^ 1])
        cut = len(content) // 2 if self.hub.fault == 'cut' and self.command == 'GET' else None
        self._send(200, content, headers, cut)

    def _may_read(self, name: str, revision: str) -> bool:
        allowed = self.headers.get('Authorization') == f'Bearer {TOKEN}'
        if self.hub.fault == 'down':
            self._send(503)
        elif name not in self.hub.repositories or (name in self.hub.private and not allowed):
            self._refuse(404 if allowed else 401, 'RepoNotFound')
        elif name in self.hub.gated:
            self._refuse(403, 'GatedRepo')
        elif self.hub.fault == 'forbidden':
            self._send(403)
        elif revision not in ('main', 'v1', COMMIT):
            self._refuse(404, 'RevisionNotFound')
        else:
            return True
        return False

    def _begin(self) -> list[str]:
        path = urlsplit(self.path).path
        self.hub.requests.append((self.command, path))
        return [unquote(part) for part in path.strip('/').split('/')]

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get('Content-Length') or 0))

    def _address(self) -> str:
        return f'http://{self.headers["Host"]}'

    def _json(self, content: dict, status: int = 200):
        self._send(status, json.dumps(content).encode(), {'Content-Type': 'application/json'})

    def _refuse(self, status: int, code: str):
        self._send(status, b'', {'X-Error-Code': code, 'X-Error-Message': code})

    def _send(self, status, content=b'', headers=None, cut=None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(content[:cut])
        if cut is not None:
            self.close_connection = True
