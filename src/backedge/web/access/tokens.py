"""The tokens that let people and programs in, and the sessions of browsers. Files keep only their hashes.

A token has 256 random bits, so a plain SHA-256 of it cannot be turned back by guessing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from backedge.adapters.journals.private_files import private_folder
from backedge.core.errors import IllegalCommand, NotFound
from backedge.core.suggestions import did_you_mean
from backedge.web.access.caller import Caller, Role

TOKENS, SESSIONS = "tokens.json", "sessions.json"
SESSION_SECONDS = 7 * 24 * 3600.0
"""How long a browser stays signed in."""
MOST_SESSIONS = 1_000
T = TypeVar("T", bound="StoredToken | SignIn")


class StoredToken(msgspec.Struct, frozen=True):
    """One token, without the token itself."""

    name: str
    role: Role
    digest: str
    roles: tuple[str, ...] = ()
    proxy: bool = False
    """Whether it belongs to a reverse proxy, which says in a header for whom it speaks."""

    @property
    def caller(self) -> Caller:
        return Caller(self.name, self.role, self.roles)


class SignIn(msgspec.Struct, frozen=True):
    """One browser that is signed in."""

    digest: str
    token: str
    """The digest of the token that it showed; empty for the address that `serve` prints."""
    until: float


class Tokens:
    """The tokens and sessions of one journal, in the folder of its state. Changes by other processes count at once."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._read: dict[str, tuple[tuple[int, ...], tuple[StoredToken | SignIn, ...]]] = {}

    # Tokens

    def all(self) -> tuple[StoredToken, ...]:
        return self._list(TOKENS, StoredToken)

    def add(self, name: str, role: Role, roles: tuple[str, ...] = (), proxy: bool = False) -> str:
        """Make a token and return it: this is the only time that anybody sees it. Raises IllegalCommand if the name is
        taken."""
        if not name.strip() or not name.isprintable():
            raise IllegalCommand(f"{name!r} cannot be the name of a token: use the name of a person or a program")
        token = secrets.token_urlsafe(32)
        made = StoredToken(name, role, digest_of(token), roles, proxy)

        def added(known: tuple[StoredToken, ...]) -> tuple[StoredToken, ...]:
            if any(each.name == name for each in known):
                raise IllegalCommand(f"there is a token for {name!r} already: remove it first, or choose another name")
            return (*known, made)

        self._change(TOKENS, StoredToken, added)
        return token

    def remove(self, name: str) -> None:
        """Remove a token, and sign out the browsers that used it. Raises NotFound."""

        def removed(known: tuple[StoredToken, ...]) -> tuple[StoredToken, ...]:
            left = tuple(each for each in known if each.name != name)
            if len(left) == len(known):
                names = [each.name for each in known]
                raise NotFound(f"there is no token for {name!r}: {did_you_mean(name, names) if names else 'add one'}")
            return left

        self._change(TOKENS, StoredToken, removed)

    def find(self, token: str) -> StoredToken | None:
        digest = digest_of(token)
        return next((each for each in self.all() if secrets.compare_digest(each.digest, digest)), None)

    # Sessions

    def sign_in(self, token: StoredToken | None, now: float) -> str:
        """Begin a session for a token, or for the printed address, and return what its cookie says."""
        cookie = secrets.token_urlsafe(32)
        made = SignIn(digest_of(cookie), token.digest if token is not None else "", now + SESSION_SECONDS)

        def begun(known: tuple[SignIn, ...]) -> tuple[SignIn, ...]:
            return (*[each for each in known if each.until > now][-MOST_SESSIONS + 1 :], made)

        self._change(SESSIONS, SignIn, begun)
        return cookie

    def sign_out(self, cookie: str) -> None:
        digest = digest_of(cookie)
        self._change(SESSIONS, SignIn, lambda known: tuple(each for each in known if each.digest != digest))

    def signed_in(self, cookie: str, now: float, owner: Caller) -> Caller | None:
        """Who the browser with this cookie is; None if it is not signed in, or its token was removed."""
        digest = digest_of(cookie)
        for each in self._list(SESSIONS, SignIn):
            if secrets.compare_digest(each.digest, digest) and each.until > now:
                if not each.token:
                    return owner
                return next((known.caller for known in self.all() if known.digest == each.token), None)
        return None

    # Files

    def _list(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """What a file says. It is read again only if it has changed."""
        path = self._state / name
        try:
            status = path.stat()
        except FileNotFoundError:
            return ()
        mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._read.get(name)
        if known is None or known[0] != mark:
            try:
                known = mark, msgspec.json.decode(path.read_bytes(), type=tuple[kind, ...])  # type: ignore[valid-type]  # a type that is known when it runs
            except msgspec.DecodeError as error:
                raise IllegalCommand(f"{path} cannot be read ({error}): delete it, and add the tokens again") from error
            self._read[name] = known
        return known[1]  # type: ignore[return-value]  # each file has values of one type

    def _change(self, name: str, kind: type[T], change: Callable[[tuple[T, ...]], tuple[T, ...]]) -> None:
        with self._locked():
            path = self._state / name
            new = msgspec.json.format(msgspec.json.encode(change(self._list(name, kind))), indent=1)
            draft = path.with_name(f".{name}.{os.getpid()}.new")
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(file, 0o600)
                os.write(file, new)
                os.fsync(file)
            finally:
                os.close(file)
            draft.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        private_folder(self._state)
        file = os.open(self._state / "tokens.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def digest_of(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
