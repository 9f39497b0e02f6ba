"""What of a page is text, and what of it a model never sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hermes.agent.web import extract
from hermes.agent.web.extract import decoded, page_of

BASE = "https://example.org/docs/page.html"
FILLER = "<p>" + "The main text goes on for a while. " * 10 + "</p>"


def text_of(html: str, base: str = BASE) -> str:
    return page_of(html.encode(), "utf-8", base).text


def test_title_headings_paragraphs_lists_code_tables_and_quotes_keep_their_form() -> None:
    page = page_of(
        b"""<!doctype html><title> A  page
        of ours </title><body><h1>One <em>two</em></h1><p>Some   words,<br>a new line, <code>f(x)</code>.</p>
        <ul><li>first<li>second<ul><li>deep</ul></ul><ol><li>uno<li>due</ol>
        <pre>def f():
    return 1</pre>
        <table><tr><th>A<th>B<tr><td>1<td>2</table><blockquote><p>said</p></blockquote>""",
        "",
        BASE,
    )
    assert page.title == "A page of ours"
    assert page.text == (
        "# One two\n\nSome words,\na new line, `f(x)`.\n\n- first\n- second\n  - deep\n1. uno\n2. due\n\n"
        "```\ndef f():\n    return 1\n```\n\nA | B\n\n1 | 2\n\n> said"
    )
    assert page.note == ""


@pytest.mark.parametrize(
    "html,text",
    [
        ('see <a href="other.html">this page</a>.', "see [this page](https://example.org/docs/other.html)."),
        ('<a href="//cdn.example/x">x</a>', "[x](https://cdn.example/x)"),
        ('<a href="/a_(b)">x</a>', "[x](https://example.org/a_%28b%29)"),
        ('<a href="#part">here</a>', "here"),
        ('<a href="javascript:alert(1)">run</a>', "run"),
        ('<a href="mailto:ana@example.org">write</a>', "write"),
        ('<a href="data:text/html,x">x</a>', "x"),
        ('<a href="/x"></a>nothing', "nothing"),
        ('<a href="http://[">broken</a>', "broken"),
        ('<a href="/card"><h3>Card</h3><p>words</p></a>', "### [Card](https://example.org/card)\n\n[words](https://example.org/card)"),
        ("<a href='/x'>one<a href='/y'>two</a>", "[one](https://example.org/x)[two](https://example.org/y)"),
        ('<base href="https://other.example/"><a href="x">x</a>', "[x](https://other.example/x)"),
        ('<img src=x alt="A cat">', "[image: A cat]"),
        ("a &lt;b&gt; &amp; c&nbsp;d", "a <b> & c\xa0d"),
    ],
)  # fmt: skip
def test_links_and_pictures_in_words(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>SECRET</script>",
        "<style>SECRET</style>",
        "<noscript>SECRET</noscript>",
        "<template>SECRET</template>",
        "<!-- SECRET -->",
        "<p hidden>SECRET</p>",
        '<p style="display: none">SECRET</p>',
        '<p style="VISIBILITY:hidden">SECRET</p>',
        '<span style="font-size:0">SECRET</span>',
        '<div style="opacity:0"><p>SECRET</p></div>',
        '<div aria-hidden="true">SECRET</div>',
        "<svg><text>SECRET</text></svg>",
        "<iframe>SECRET</iframe>",
        "<textarea>SECRET</textarea>",
        "<select><option>SECRET</select>",
        "<head><meta name=x content=SECRET></head>",
        '<input type=hidden value="SECRET">',
    ],
)
def test_what_people_do_not_see_a_model_does_not_read(hidden: str) -> None:
    assert text_of(f"{FILLER}{hidden}{FILLER}").count("SECRET") == 0


def test_a_style_that_shows_is_shown() -> None:
    assert text_of('<p style="opacity:0.9; font-size:0.8em">seen</p>') == "seen"


def test_furniture_is_left_out_where_there_is_a_main_part() -> None:
    html = (
        "<header>Site</header><nav><a href=/>Home</a></nav><div>an advertisement</div>"
        f"<main><article><header><h1>Title</h1></header>{FILLER}</article></main><aside>More</aside><footer>Ends</footer>"
    )
    text = text_of(html)
    assert text.startswith("# Title\n\nThe main text")
    assert not any(word in text for word in ("Site", "Home", "advertisement", "More", "Ends"))


def test_without_a_main_part_all_but_the_furniture_is_taken() -> None:
    text = text_of(f"<nav>Home</nav><div>{FILLER}</div><div role=navigation>Menu</div><footer>Ends</footer>")
    assert text.startswith("The main text")
    assert "Home" not in text
    assert "Menu" not in text


def test_a_page_that_is_all_furniture_is_still_read() -> None:
    assert text_of("<nav><a href=/a>A</a></nav><footer>b</footer>") == "[A](https://example.org/a)\n\nb"


@pytest.mark.parametrize(
    "body,charset,text",
    [
        ("naïve".encode("latin-1"), "iso-8859-1", "naïve"),
        (b'<meta charset="windows-1251">' + "привет".encode("cp1251"), "", "привет"),
        (
            b'<meta http-equiv=Content-Type content="text/html; charset=shift_jis">' + "日本".encode("shift_jis"),
            "",
            "日本",
        ),
        (b"\xef\xbb\xbf" + "ü".encode(), "latin-1", "ü"),
        ("ü".encode(), "no-such-charset", "ü"),
        (b"\xff broken", "utf-8", "\ufffd broken"),
        (b"x", "idna\0", "x"),
    ],
)
def test_letters_are_read_as_the_server_or_the_page_says(body: bytes, charset: str, text: str) -> None:
    assert decoded(body, charset).endswith(text)


def test_deep_nesting_costs_no_recursion() -> None:
    assert text_of("<div>" * 3000 + "deep" + "</div>" * 3000) == "deep"
    assert text_of("<ul><li>" * 500 + "deep").endswith("- deep")


def test_a_page_beyond_every_bound_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MAX_CHARS", 1000)
    page = page_of(FILLER.encode() * 100, "", BASE)
    assert 1000 < len(page.text) < 3000
    assert "too large" in page.note


PIECES = some.sampled_from(
    [
        *("<", ">", "</", "a", "li", "p", " href=/x", "pre", "ul", "ol", "table", "td", "code", "h1", "main", "words "),
        *(
            "<a href=/x>",
            "</a>",
            "<li>",
            "</ul>",
            "<pre>",
            "</pre>",
            "<blockquote>",
            "<br>",
            ' style="',
            "&",
            "](",
            "\0",
        ),
    ]
)


@given(some.lists(PIECES, max_size=40))
def test_no_page_breaks_the_reader(pieces: list[str]) -> None:
    page = page_of("".join(pieces).encode(), "", BASE)
    assert "\0" not in page.text


@pytest.mark.parametrize("html", ["", " ", "<", "<html", "<a href", "\0", "<table><tr><td>", "</p></p>", "<pre>"])
def test_broken_html_is_no_error(html: str) -> None:
    assert page_of(html.encode(), "", BASE).note == ""
