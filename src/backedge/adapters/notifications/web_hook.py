"""Sends a message to a web hook, signed as Standard Webhooks describes it."""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
from hashlib import sha256
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from backedge.adapters.notifications.address import NotSent

TIMEOUT = 10.0
"""Seconds that each step of a request may take."""
_PREFIX = "whsec_"


class _StaysHere(HTTPRedirectHandler):
    """Follows no redirection: a message goes where the workflow file says, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def headers_of(id: str, time: float, body: bytes, secret: str = "", variable: str = "secret") -> dict[str, str]:
    """The headers of a message. Without a secret it is not signed. Raises NotSent if the secret cannot be one."""
    stamp = str(int(time))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "backedge",
        "webhook-id": id,
        "webhook-timestamp": stamp,
    }
    if secret:
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise NotSent(f"{variable} is not base64: make a secret with `openssl rand -base64 24`") from None
        signature = hmac.digest(key, f"{id}.{stamp}.".encode() + body, sha256)
        headers["webhook-signature"] = f"v1,{base64.b64encode(signature).decode()}"
    return headers


def post(address: str, body: bytes, headers: dict[str, str], timeout: float = TIMEOUT) -> None:
    """Send a request and wait for its answer. Raises NotSent unless the answer is a success."""
    try:
        with build_opener(_StaysHere).open(Request(address, body, headers), timeout=timeout):
            return
    except HTTPError as error:
        error.close()
        where = ", which sends elsewhere: give the final address" if 300 <= error.code < 400 else ""
        raise NotSent(f"the receiver answered {error.code}{where}") from None
    except TimeoutError:
        raise NotSent(f"the receiver did not answer within {timeout:g} s") from None
    except URLError as error:
        raise NotSent(f"the receiver cannot be reached: {_reason(error.reason)}") from None
    except (HTTPException, OSError) as error:
        raise NotSent(f"the connection failed: {_reason(error)}") from None
    except ValueError:
        raise NotSent("the address is not one of a web hook: expected https://host/path") from None


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    return getattr(error, "strerror", None) or type(error).__name__
