/** What was written and not sent yet, by conversation. It outlives a reload of this window, and not the window. */
const PREFIX = "hermes.draft.";
const LONGEST = 100_000;

export function readDraft(conversation: string): string {
  try {
    return sessionStorage.getItem(PREFIX + conversation) ?? "";
  } catch {
    return ""; // storage is switched off in this browser
  }
}

export function keepDraft(conversation: string, text: string): void {
  try {
    if (text.trim()) sessionStorage.setItem(PREFIX + conversation, text.slice(0, LONGEST));
    else sessionStorage.removeItem(PREFIX + conversation);
  } catch {
    // storage is full or switched off: the draft lives as long as the page
  }
}

/** Whoever signs in here next finds nothing of the one before. */
export function forgetDrafts(): void {
  try {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  } catch {
    // storage is switched off: nothing was kept
  }
}
