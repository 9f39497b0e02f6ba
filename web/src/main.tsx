import { render } from "preact";
import { App } from "./app";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/chat.css";
import "./styles/pages.css";

const place = document.getElementById("app");
if (place) {
  place.replaceChildren();
  render(<App />, place);
}
