from evenhand.record import Run


def render(run: Run) -> str:
    return "<html></html>"
