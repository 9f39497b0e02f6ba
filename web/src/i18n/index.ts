import { computed, effect, signal } from "@preact/signals";
import { session } from "../api/client";
import { chosenLanguage, remember } from "../preferences";
import { en, type Texts } from "./en";

export const language = computed<"en" | "zh">(() => {
  const wanted = chosenLanguage.value || session.value?.language || navigator.language;
  return wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
});
const texts = signal<Texts>(en);

/** Fetch the sentences of the chosen language. English is always there. */
export async function loadTexts(): Promise<void> {
  const wanted = language.value;
  const found = wanted === "zh" ? (await import("./zh")).zh : en;
  if (language.value === wanted) texts.value = found;
}

effect(() => {
  document.documentElement.lang = language.value === "zh" ? "zh-Hans" : "en";
  void loadTexts().catch(() => undefined); // the gateway is gone for now: what is shown stays
});

export function chooseLanguage(value: string): void {
  chosenLanguage.value = value;
  remember("language", value);
}

/** The sentence under a name. `{name}` in it is filled in. */
export function t(name: keyof Texts, values: Record<string, string | number> = {}): string {
  return texts.value[name].replace(/\{(\w+)\}/g, (whole, key: string) => String(values[key] ?? whole));
}

/** The word for a state as the gateway spells it; a state this page does not know is shown as it is. */
export function state(name: string | null | undefined): string {
  if (!name) return "";
  const key = `state_${name}` as keyof Texts;
  return key in texts.value ? t(key) : name.replaceAll("_", " ");
}

const locale = computed(() => (language.value === "zh" ? "zh-CN" : navigator.language.startsWith("en") ? navigator.language : "en"));

/** Made once for each language: making one takes a browser as long as writing a hundred dates with it. */
const shortDay = computed(() => new Intl.DateTimeFormat(locale.value, { month: "short", day: "numeric" }));
const longDay = computed(() => new Intl.DateTimeFormat(locale.value, { month: "short", day: "numeric", year: "numeric" }));
const fullTime = computed(() => new Intl.DateTimeFormat(locale.value, { dateStyle: "medium", timeStyle: "medium", hour12: false }));

export function formatTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  const clock = [date.getHours(), date.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  if (isToday) return clock;
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  return `${(isThisYear ? shortDay : longDay).value.format(date)} ${clock}`;
}

export function formatFullTime(seconds: number): string {
  return fullTime.value.format(new Date(seconds * 1000));
}

export function formatDuration(seconds: number): string {
  if (seconds < 0.9995) return t("milliseconds", { n: Math.round(seconds * 1000) });
  if (seconds < 10) return t("seconds", { n: seconds.toFixed(1) });
  if (seconds < 60) return t("seconds", { n: Math.round(seconds) });
  if (seconds < 3600) return t("minutes", { n: Math.floor(seconds / 60) });
  if (seconds < 86400) return t("hours", { n: Math.floor(seconds / 3600) });
  return t("days", { n: Math.floor(seconds / 86400) });
}

export function formatAge(seconds: number): string {
  return seconds < 5 ? t("justNow") : t("ago", { time: formatDuration(seconds) });
}

export function formatNumber(value: number): string {
  return value.toLocaleString(locale.value, { maximumFractionDigits: value < 10 ? 2 : 0 });
}

export function formatCount(value: number): string {
  return value.toLocaleString(locale.value, value >= 100_000 ? { notation: "compact", maximumFractionDigits: 1 } : {});
}

export function formatCost(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return `$${value < 1 && value > 0 ? value.toFixed(3) : value.toFixed(2)}`;
}
