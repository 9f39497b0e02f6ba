import { signal } from "@preact/signals";
import { t } from "../i18n";
import { Icon } from "./icons";

interface Toast {
  id: number;
  text: string;
  kind: "info" | "error";
}
const toasts = signal<Toast[]>([]);
let last = 0;
const SECONDS = { info: 4, error: 9 };

export function toast(text: string, kind: Toast["kind"] = "info"): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-3), { id, text: text.slice(0, 500), kind }];
  setTimeout(() => dismiss(id), SECONDS[kind] * 1000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast ${one.kind}`} dir="auto">
          <span>{one.text}</span>
          <button class="icon-button" aria-label={t("close")} onClick={() => dismiss(one.id)}>
            <Icon name="x" />
          </button>
        </div>
      ))}
    </div>
  );
}
