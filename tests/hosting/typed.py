"""Uses the client that `pillion client notes --lang python --output client.py` made."""

import sys

from client import Notes, Pillion

with Pillion(command=sys.argv[1]) as pillion:
    notes = Notes(pillion)
    imported = notes.import_notes({"count": 2})  # mypy refuses `{"count": "two"}`
    listed = notes.list_notes()
    print(f"You have these notes: {listed.text} ({imported.text})")
