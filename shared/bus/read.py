"""One key, once: for what is asked too rarely for a watch."""

from __future__ import annotations

import msgspec
import nats.js.errors

from shared.bus.client import _NETWORK_ERRORS, Bus
from shared.bus.errors import BusUnavailable
from shared.contracts.subject import Body, Key


async def read(bus: Bus, key: Key[Body], id_: str = "") -> Body | None:
    """The value as it is now; None = there is none. Raises BusUnavailable, msgspec.MsgspecError."""
    try:
        store = await bus.bucket(key.bucket)
        entry = await store.get(key.key(id_))
    except nats.js.errors.KeyNotFoundError:
        return None
    except _NETWORK_ERRORS as error:
        raise BusUnavailable(f"{key.bucket.name} {key.key(id_)}: {error or type(error).__name__}") from error
    return msgspec.json.decode(entry.value or b"", type=key.body)
