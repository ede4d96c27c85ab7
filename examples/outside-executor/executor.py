"""An outside executor for Docmill in plain Python: takes messages over HTTP, answers each step by callback.

    python executor.py PORT SECRET [COMMAND...]

COMMAND brings a callback to Docmill, by default `docmill callback`. Nothing is imported but the standard library: yours
may be written in any language, as docs/reference/external-steps.md says.
"""

import base64
import hashlib
import hmac
import json
import queue
import subprocess
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

TOLERANCE = 300


def signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """As Standard Webhooks has it: over the very bytes, never over JSON that was read and written again."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def is_genuine(key: bytes, headers, body: bytes) -> bool:
    """Whether the message comes from who has the secret, and is not an old one sent again."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    wanted = signature(key, message_id, timestamp, body)
    return any(hmac.compare_digest(wanted, given) for given in headers.get("webhook-signature", "").split(" "))


def work(step: dict, entity: dict) -> dict:
    """What this executor is for. Here it counts the letters of the prompt, or of the entity."""
    text = step["prompt"] or json.dumps(entity)
    return {"message": f"{len(text)} characters", "model": step["model"]}


def answer(message: dict, step: dict) -> dict:
    """The callback for one step. The token says which attempt it answers: send it back as it came."""
    callback = {"jobId": message["metadata"]["jobId"], "stepKey": step["stepKey"], "token": step["token"]}
    try:
        return {**callback, "status": "COMPLETED", "resultData": work(step, message["entity"])}
    except Exception as error:
        return {**callback, "status": "FAILED", "errorMessage": str(error)}


def deliver(key: bytes, command: list, callback: dict) -> None:
    """Sign the callback and hand it over. It may be sent as often as you like: it counts once."""
    body = json.dumps(callback).encode()
    message_id, timestamp = f"msg_{uuid.uuid4()}", str(int(time.time()))
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(key, message_id, timestamp, body),
    }
    options = [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]
    subprocess.run([*command, *options, "-"], input=body, stdout=subprocess.DEVNULL)


def main() -> None:
    port, secret, *command = sys.argv[1:]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    messages: queue.Queue = queue.Queue()
    # A message may come twice, with the same id. (A real executor keeps its messages on disk before it says 202.)
    seen = set()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            genuine = is_genuine(key, self.headers, body)
            if genuine and self.headers["webhook-id"] not in seen:
                seen.add(self.headers["webhook-id"])
                messages.put(json.loads(body))
            self.send_response(202 if genuine else 401)
            self.send_header("content-length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    while True:
        message = messages.get()
        for step in message["metadata"]["steps"]:
            deliver(key, command or ["docmill", "callback"], answer(message, step))


if __name__ == "__main__":
    main()
