/** What waits for a person: shown as numbers in the navigation and in the title of the window. */
import { signal } from "@preact/signals";
import { api, mayOpen } from "./api/client";
import { onLive } from "./api/live";

export const waiting = signal({ approvals: 0, dead: 0 });
const GATHER_MILLISECONDS = 400;

async function load(): Promise<void> {
  if (!mayOpen("overview")) return;
  const seen = await api.get<{ approvals_waiting: number; dead_letters: number }>("/api/overview");
  waiting.value = { approvals: seen.approvals_waiting ?? 0, dead: seen.dead_letters ?? 0 };
}

export function watchWaiting(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void load().catch(() => undefined), GATHER_MILLISECONDS); // the next event tries again
  };
  again();
  const leave = onLive((event) => {
    const isDead = event.kind === "message" && event.data["direction"] === "out" && event.data["state"] === "dead";
    if (event.kind === "approval" || event.kind === "reload" || isDead) again();
  });
  return () => {
    clearTimeout(timer);
    leave();
  };
}
