import { render } from "preact";
import { App } from "./app";
import { loadTexts } from "./i18n";
import { route } from "./router";
import { loadMarkdown } from "./ui/text";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/chat.css";
import "./styles/pages.css";

function begin(): void {
  const place = document.getElementById("app");
  if (!place) return;
  place.replaceChildren();
  render(<App />, place);
}

if (route.value.query.has("id")) void loadMarkdown().catch(() => undefined); // whoever shows it tries again
void loadTexts().then(begin, begin);
