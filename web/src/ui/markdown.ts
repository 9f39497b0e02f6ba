/** Markdown of the agent as HTML that holds nothing but text, loaded with the first answer. */
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { visible } from "./text";

const marked = new Marked({ gfm: true, breaks: true, async: false });
marked.use({
  renderer: {
    html: ({ text }) => escape(text), // HTML in a message is text
    // Nothing is loaded from other hosts: a picture of a message becomes a link that a person may follow.
    image: ({ href, text }) => `<a href="${escape(href)}">🖼 ${escape(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

const purify = DOMPurify(window);
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const address = node.getAttribute("href") ?? "";
  if (!/^(https?|mailto):/i.test(address)) {
    node.removeAttribute("href");
    return;
  }
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("title", visible(address.slice(0, 300)));
});
const ALLOWED = {
  ALLOWED_TAGS: [
    "p", "br", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "table", "thead",
    "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOW_DATA_ATTR: false,
};

export function renderMarkdown(text: string): string {
  return purify.sanitize(marked.parse(text) as string, ALLOWED);
}

/** The HTML of each paragraph, list or piece of code. What did not change since `before` is not made again. */
export function renderBlocks(text: string, before: Map<string, string>): Map<string, string> {
  const tokens = marked.lexer(text);
  const hasLinks = Object.keys(tokens.links).length > 0; // a paragraph's links may be named in another one
  const blocks = new Map<string, string>();
  tokens.forEach((token, index) => {
    if (token.type === "space" || token.type === "def") return;
    const key = `${index} ${token.raw}`;
    const known = hasLinks ? undefined : before.get(key);
    blocks.set(key, known ?? purify.sanitize(marked.parser([token]), ALLOWED));
  });
  return blocks;
}
