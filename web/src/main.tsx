import { render } from "preact";
import { App } from "./app";
import { askEarly } from "./chat/early";
import { loadTexts } from "./i18n";
import { route } from "./router";
import { warmUp } from "./ui/formatting";
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

const id = route.value.page === "chat" ? route.value.query.get("id") : null;
if (id && !location.hash.startsWith("#sign-in=")) {
  askEarly(id);
  warmUp();
}
void loadTexts().then(begin, begin);
