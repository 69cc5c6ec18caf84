"""Sends a message through apprise, which knows about 180 services. It is imported only here, when it is needed."""

from __future__ import annotations

import logging

from backedge.adapters.notifications.address import NotSent


def notify(address: str, title: str, text: str) -> None:
    """Send a message. Raises NotSent if the service does not take it."""
    try:
        import apprise
    except ImportError:
        raise NotSent("this address needs apprise: pip install 'backedge[notify]'") from None
    # Its log lines have addresses in them.
    logger = logging.getLogger("apprise")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    service = apprise.Apprise(asset=apprise.AppriseAsset(app_id="backedge", async_mode=False))
    if not service.add(address):
        raise NotSent("apprise does not understand this address: see its list of services")
    if not service.notify(title=title, body=text, body_format=apprise.NotifyFormat.TEXT):
        raise NotSent("the service did not take the message")
