"""An optional signature over a release's manifest: Ed25519, from the package `cryptography` (the extra `sign`).

Digests show that nothing changed since the release was made. A signature also shows who made it, to anyone who has the public key
from elsewhere.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamedit.errors import UserError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE = "signature.json"
MAKE_ONE = "make one with `openssl genpkey -algorithm ed25519 -out key.pem`"
TAKE_PUBLIC = "`openssl pkey -in key.pem -pubout` makes it from a key"


def load_key(path: Path) -> "Ed25519PrivateKey":
    """A private key from a PEM file without a password."""
    _needs_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return _loaded(path, "key", lambda text: load_pem_private_key(text, None), Ed25519PrivateKey, MAKE_ONE)


def load_public_key(path: Path) -> "Ed25519PublicKey":
    """A public key from a PEM file."""
    _needs_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    return _loaded(path, "public_key", load_pem_public_key, Ed25519PublicKey, TAKE_PUBLIC)


def fingerprint(key: "Ed25519PublicKey") -> str:
    """The key itself, 32 bytes in hexadecimal."""
    return key.public_bytes_raw().hex()


def signed(manifest: bytes, key: "Ed25519PrivateKey") -> str:
    """The text of `signature.json`."""
    found = {"algorithm": "Ed25519", "public_key": fingerprint(key.public_key()), "signature": key.sign(manifest).hex()}
    return json.dumps(found, indent=2) + "\n"


def complaint(folder: Path, claimed: str | None, public_key: Path | None) -> str | None:
    """What is wrong with the signature of a folder whose manifest says that it was signed with the key `claimed`."""
    place = folder / SIGNATURE
    if claimed is None:
        return "the release is not signed, so the public key has nothing to check" if public_key else None
    if public_key is not None and fingerprint(load_public_key(public_key)) != claimed:
        return f"the release was signed with another key ({claimed[:16]}…) than the one in {public_key.name}"
    _needs_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        text = place.read_text(encoding="utf-8")
        found = json.loads(text)
        if text != json.dumps(found, indent=2) + "\n" or (found["algorithm"], found["public_key"]) != (
            "Ed25519",
            claimed,
        ):
            return f"{SIGNATURE} is not as it was written"
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(claimed))
        key.verify(bytes.fromhex(found["signature"]), (folder / "manifest.json").read_bytes())
    except InvalidSignature:
        return f"{SIGNATURE} does not fit manifest.json"
    except (OSError, ValueError, KeyError, TypeError):
        return f"{SIGNATURE} cannot be read"
    return None


def _loaded(path: Path, argument: str, load: Callable[[bytes], Any], kind: type[Any], remedy: str) -> Any:
    try:
        key = load(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"{argument}={str(path)!r} cannot be read ({error.strerror}); {remedy}.") from error
    except (ValueError, TypeError) as error:
        raise UserError(f"{argument}={str(path)!r} is no key in PEM without a password; {remedy}.") from error
    if not isinstance(key, kind):
        raise UserError(f"{argument}={str(path)!r} is a key of another kind; {remedy}.")
    return key


def _needs_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UserError(
            "Signatures need the package cryptography; install it with `pip install tamedit[sign]`."
        ) from error
