"""The HTTP API: `/api/v1`, with the same shapes as `--json`."""
