"""Page: people answer questions in a browser, and somebody watches what comes of it.

Needs the extra `page` (Starlette, uvicorn). Pages are made here, by `tiebreak.markup`, which
escapes all that it is given; htmx, one file in static/, fetches parts of them. Nothing is built,
and nothing comes from the network.
"""
