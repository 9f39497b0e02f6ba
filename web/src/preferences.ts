/** What this browser remembers: theme, language, which conversations were seen. Nothing secret is ever kept here. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

export function stored(name: string): string {
  try {
    return localStorage.getItem(`hermes.${name}`) ?? "";
  } catch {
    return ""; // storage is switched off in this browser
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`hermes.${name}`, value);
  } catch {
    // storage is switched off in this browser: the choice holds until the page is closed
  }
}

export const theme = signal<Theme>((["light", "dark"].includes(stored("theme")) ? stored("theme") : "system") as Theme);
export const chosenLanguage = signal<string>(stored("language"));

effect(() => {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset["theme"] = theme.value;
  remember("theme", theme.value);
});
