/** Server-sent events by fetch: EventSource hides comments, and with them whether the line is alive. */

export interface ServerEvent {
  id: string;
  kind: string;
  data: string;
}

/** A line longer than this is no event of ours: the stream is given up instead of filling the memory. */
const MAX_BUFFER = 8 * 1024 * 1024;

export class EventParser {
  private buffer = "";
  private id = "";
  private kind = "";
  private data: string[] = [];

  constructor(private readonly onEvent: (event: ServerEvent) => void) {}

  feed(text: string): void {
    this.buffer += text;
    if (this.buffer.length > MAX_BUFFER) throw new Error("An event is too long.");
    let start = 0;
    for (;;) {
      const end = this.buffer.indexOf("\n", start);
      if (end < 0) break;
      this.line(this.buffer.slice(start, end).replace(/\r$/, ""));
      start = end + 1;
    }
    this.buffer = this.buffer.slice(start);
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length) this.onEvent({ id: this.id, kind: this.kind || "message", data: this.data.join("\n") });
      this.kind = "";
      this.data = [];
      return;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.kind = value;
    else if (field === "id") this.id = value;
  }
}

/** Read a stream to its end. `silence` milliseconds without a byte end it with an error. */
export async function readEvents(
  response: Response,
  onEvent: (event: ServerEvent) => void,
  silence: number,
  stop: AbortController,
): Promise<void> {
  if (!response.body) throw new Error("The answer has no body.");
  const parser = new EventParser(onEvent);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer = setTimeout(() => stop.abort(), silence);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), silence);
      parser.feed(value);
    }
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => undefined); // the connection may be gone already
  }
}
