"""What Inspect finds under `evenhand/` (entry point `inspect_ai`): a task for every probe."""

from evenhand.integrations.inspect.tasks import TASKS, chosen, findings, options_asked

globals().update(TASKS)

__all__ = ["TASKS", "chosen", "findings", "options_asked"]
