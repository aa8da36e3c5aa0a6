"""Page: people answer questions in a browser, and leads watch the labels improve.

Needs the extra `page` (Starlette, uvicorn). Pages come from templates/, htmx fetches parts of them,
and nothing comes from the network.

    guard.py   who may come in, and what every request must pass
    room.py    what people do: names, answers, what a task looks like
    watch.py   what leads see: progress, tasks in doubt, people, downloads
    app.py     addresses, and the server
"""

from tiebreak.page import messages as messages
