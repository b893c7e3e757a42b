"""Work of agents on branches: who did what, when, with which statement; with a kernel it stays current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import traitlets

from ducklake_lab.errors import UsageError
from ducklake_lab.widgets.html import (
    DOT,
    NONE,
    cell,
    clip,
    count,
    counted,
    dot,
    escape,
    heading,
    readable,
    scroll,
    signed,
    table,
    time,
    view,
    visible,
    zone,
)
from ducklake_lab.widgets.mounted import Mounted, script, styles

if TYPE_CHECKING:
    from ducklake_lab.branches.agents_work import AgentBranch, AgentsWork
    from ducklake_lab.model.history import HistoryEntry

#: Most branches and commits of a branch that are listed, and characters of a statement.
_BRANCHES, _COMMITS, _STATEMENT = 50, 50, 2_000
_STYLE = """
.dlk .dlk-ag-sql{white-space:pre-wrap;overflow-wrap:anywhere;max-width:70ch;margin:0;max-height:8em;overflow:auto}
"""


def render(work: AgentsWork) -> str:
    """Returns the branches as static HTML."""
    title = f'<p><span class="dlk-title">{escape(clip(work.lake, 120))}</span>&ensp;<b>agents</b></p>'
    if not work:
        body = (
            '<p class="dlk-soft">No branch has commits of agents. <code>ducklake-lab mcp LAKE</code> lets one in.</p>'
        )
        return view(title + body, label="Work of agents")
    shown = "".join(map(_branch, work[:_BRANCHES]))
    left = len(work) - _BRANCHES
    more = f'<div class="dlk-foot">{counted(left, "more branch", "more branches")}</div>' if left > 0 else ""
    return view(title + shown + more, style=_STYLE, label="Work of agents")


def _branch(one: AgentBranch) -> str:
    command = f"%ducklake review {one.branch.name}"
    head = (
        f"<h4>{escape(one.branch.name)} <small>{escape(_facts(one))}</small></h4>"
        f'<p><code class="dlk-mono">{escape(command)}</code></p>'
    )
    if not one.commits:
        return head
    rows = [_commit(entry) for entry in one.commits[-_COMMITS:]]
    when = f"time, {zone(one.commits[-1].info.snapshot_time)}"
    heads = (
        heading("snapshot", right=True),
        heading(when),
        heading("agent"),
        heading("change"),
        heading("rows", right=True),
        heading("message"),
        heading("statement"),
    )
    left = len(one.commits) - _COMMITS
    more = f'<div class="dlk-foot">{counted(left, "earlier commit")}</div>' if left > 0 else ""
    return head + scroll(table(heads, rows), f"Commits of agents on {clip(one.branch.name, 60)}") + more


def _commit(entry: HistoryEntry) -> str:
    statement = _statement(entry)
    sql = (
        f'<pre class="dlk-mono dlk-ag-sql">{"<br>".join(map(escape, statement.splitlines()))}</pre>'
        if statement
        else NONE
    )
    cells = (
        cell(str(entry.info.snapshot_id), right=True),
        cell(escape(time(entry.info.snapshot_time, precise=True))),
        cell(escape(_agent(entry))),
        cell(dot(entry.kind) + escape(clip(", ".join(entry.changes), 120)), wrap=True),
        cell(escape(_rows(entry)) or NONE, right=True),
        cell(escape(clip(entry.info.commit_message or "", 300)) or NONE, wrap=True),
        cell(sql),
    )
    return f"<tr>{''.join(cells)}</tr>"


def _agent(entry: HistoryEntry) -> str:
    return clip((entry.info.author or "").partition(":")[2].strip(), 60)


def _rows(entry: HistoryEntry) -> str:
    return signed(entry.rows_added, entry.rows_removed, at_most=entry.at_most)


def _statement(entry: HistoryEntry) -> str:
    note = entry.note
    return clip(note.statement, _STATEMENT) if note is not None and note.statement else ""


def _facts(one: AgentBranch) -> str:
    """Returns a line of facts about a branch."""
    added, removed = one.rows
    began = f"began at snapshot {one.branch.snapshot_id}"
    on = f" of {one.branch.parent}" if one.branch.parent is not None else ""
    facts = [", ".join(one.agents), began + on]
    if one.problem is None:
        facts.append(counted(len(one.commits), "commit"))
        facts += [signed(added, removed, at_most=one.at_most) + " rows"] if added or removed != 0 else []
        facts += [counted(one.others, "commit") + " of others"] if one.others else []
        if one.to_merge is not None:
            facts.append("merged" if not one.to_merge and one.commits else f"{count(one.to_merge)} to merge")
    facts += [one.verdict or "", one.problem or ""]
    return DOT.join(clip(fact, 300) for fact in facts if fact)


class AgentsView(Mounted):
    """The work of agents, read again while a page shows it and a catalog has changed.

    Attributes:
        work: what is displayed.
    """

    _esm = script("agents")
    _css = styles("agents")

    heading = traitlets.Unicode("").tag(sync=True)
    zone = traitlets.Unicode("").tag(sync=True)
    branches: traitlets.List[dict[str, object]] = traitlets.List().tag(sync=True)
    more = traitlets.Int(0).tag(sync=True)

    def __init__(self, work: AgentsWork) -> None:
        self.work = work
        super().__init__(heading=visible(clip(work.lake, 120)), **self._seen())

    def _seen(self) -> dict[str, Any]:
        times = [entry.info.snapshot_time for one in self.work for entry in one.commits]
        return {
            "branches": [_state(one) for one in self.work[:_BRANCHES]],
            "more": max(0, len(self.work) - _BRANCHES),
            "zone": zone(times[-1]) if times else "",
        }

    def answer_look(self, _content: dict[str, Any]) -> dict[str, Any]:
        """Reads the work again if a catalog has changed; says whether it has."""
        newer = self.work.newer()
        has_changed = newer is not self.work
        if has_changed:
            self.work = newer
            with self.hold_sync():
                for name, value in self._seen().items():
                    setattr(self, name, value)
        return {"changed": has_changed}

    def answer_review(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the static review of a branch."""
        name = str(content["branch"])
        if name not in {one.branch.name for one in self.work}:
            raise UsageError("There is no such branch any more; run the cell again.")
        return {"html": self.work.review(name)._repr_html_()}

    def answer_still(self, _content: dict[str, object]) -> dict[str, Any]:
        """Returns the static view, for the saved output."""
        return {"html": self._repr_html_()}

    def still(self) -> str:
        return render(self.work)

    def __repr__(self) -> str:
        return "\n".join(map(visible, repr(self.work).splitlines()))


def _state(one: AgentBranch) -> dict[str, object]:
    """Returns a branch as a page draws it."""
    return {
        "name": one.branch.name,
        "facts": visible(_facts(one)),
        "verdict": one.verdict or "",
        "problem": visible(clip(one.problem, 300)) if one.problem else "",
        "earlier": max(0, len(one.commits) - _COMMITS),
        "commits": [
            {
                "snapshot": entry.info.snapshot_id,
                "time": time(entry.info.snapshot_time, precise=True),
                "agent": visible(_agent(entry)),
                "kind": entry.kind,
                "changes": visible(clip(", ".join(entry.changes), 200)),
                "rows": _rows(entry),
                "message": visible(clip(entry.info.commit_message or "", 300)),
                "statement": readable(_statement(entry)),
            }
            for entry in one.commits[-_COMMITS:]
        ],
    }


def live(work: AgentsWork) -> Any:
    """Returns a notebook's output for the work of agents."""
    return AgentsView(work)._repr_mimebundle_()
