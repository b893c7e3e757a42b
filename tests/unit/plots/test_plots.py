from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

import ducklake_lab as dl
from ducklake_lab.diff.model import Histogram
from ducklake_lab.plots import diff, files, history
from ducklake_lab.plots.style import plain
from ducklake_lab.session.listings import History
from tests.browser import samples


def test_history_has_a_bar_up_and_down_per_snapshot():
    figure = history.plot(samples.history())
    bars = {(x, y) for trace in figure.data if trace.type == "bar" for x, y in zip(trace.x, trace.y, strict=True)}
    assert (15, -8255) in bars
    assert (14, 58665) in bars
    assert (14, -58665) in bars
    marks = [x for trace in figure.data if trace.type == "scatter" for x in trace.x]
    assert marks == [0, 16]


def test_history_of_one_snapshot_and_of_none():
    assert len(history.plot(History("x", [samples.history()[3]])).data) == 2
    assert len(history.plot(History("x", [])).data) == 0


def test_files_add_up():
    listing = samples.files()
    (tree,) = files.plot(listing).data
    assert sum(tree["values"]) == sum(entry.data_file.file_size_bytes for entry in listing)
    assert set(tree.parents) - {""} <= set(tree.ids)
    assert len(tree.ids) == 1 + 12 + 12


def test_diff_shows_counts_and_both_distributions():
    figure = diff.plot(samples.updated())
    assert list(figure.data[0].x) == [0, 0, 58665]
    names = [trace.name for trace in figure.data[1:]]
    assert names == ["before", "after", "before", "after"]
    assert sum(figure.data[3].y) == 7400


def test_diff_without_histograms_is_the_counts():
    columns = tuple(replace(column, histogram=None) for column in samples.deleted().columns)
    figure = diff.plot(replace(samples.deleted(), columns=columns))
    assert len(figure.data) == 1


def test_columns_can_be_limited():
    assert len(diff.plot(samples.updated(), columns=1).data) == 3


@pytest.mark.parametrize(
    "figure",
    [history.plot(samples.history()), files.plot(samples.files()), diff.plot(samples.deleted())],
    ids=["history", "files", "diff"],
)
def test_background_is_the_page(figure: go.Figure):
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"


def test_texts_of_the_catalog_are_no_markup():
    assert plain("<b onclick=x>&\u202e\n") == "&lt;b onclick=x>&amp;··"
    entry = samples.history()[3]
    hostile = replace(entry, info=replace(entry.info, commit_message="<a href='x'>y</a>"), changes=("<i>z</i>",))
    text = history.plot(History("<b>t</b>", [hostile])).to_json()
    assert "<a" not in text
    assert "<i>" not in text


def test_a_figure_leaves_a_still_picture_behind():
    import plotly.io
    from IPython.core.interactiveshell import InteractiveShell

    plotly.io.renderers.default = "plotly_mimetype"
    bundle, _ = InteractiveShell.instance().display_formatter.format(diff.plot(samples.updated()))
    assert "application/vnd.plotly.v1+json" in bundle
    assert "<svg" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]


def test_a_session_has_its_figures_by_name(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2); INSERT INTO t VALUES (3)")
        assert "3" in session.plot.history().to_json()
        assert session.plot.diff("t", 2).layout.title.text == session.table("t").diff(2).plot().layout.title.text
        assert session.plot.files("t").to_dict()["layout"] == session.table("t").files().plot().to_dict()["layout"]


def test_bars_are_over_their_bins_and_the_legend_is_beside_the_toolbar():
    figure = diff.plot(samples.updated())
    delays = next(trace for trace in figure.data if trace.name == "before" and "-30" in trace.customdata)
    assert list(delays.x[:2]) == [-24, -12]  # bins from -30 and from -18
    assert list(delays.customdata[:2]) == ["-30", "-18"]
    assert (figure.layout.legend.x, figure.layout.legend.xanchor) == (0, "left")
    histogram = Histogram(("2013-01-01", "2013-01-03"), (1, 2), (2, 1), numeric=True)
    column = replace(samples.updated().columns[0], histogram=histogram, share=1.0)
    times = diff.plot(replace(samples.updated(), columns=(column,))).data[1]
    assert [str(moment)[:10] for moment in times.x] == ["2013-01-02", "2013-01-04"]
