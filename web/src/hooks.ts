import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { connection, onLive } from "./api/live";
import { toast } from "./ui/toast";

export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  reload: () => void;
  set: (value: T) => void;
}

const GATHER_MILLISECONDS = 150;

/**
 * Load something, and again when a live event of one of these kinds arrives. Events that come close together load once,
 * and while a request is under way the next one waits for it: a busy gateway is not asked more often than it answers.
 */
export function useLive<T>(
  load: (signal: AbortSignal) => Promise<T>,
  kinds: readonly string[],
  dependencies: readonly unknown[],
): Loaded<T> {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<Error>();
  const loader = useRef(load);
  loader.current = load;
  const again = useRef<() => void>(() => undefined);

  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLoading = false;
    let isStale = false;

    async function run(): Promise<void> {
      if (isLoading) {
        isStale = true;
        return;
      }
      isLoading = true;
      do {
        isStale = false;
        try {
          const value = await loader.current(stop.signal);
          if (stop.signal.aborted) return;
          setData(() => value);
          setError(undefined);
        } catch (reason) {
          if (stop.signal.aborted) return;
          setError(reason as Error);
        }
      } while (isStale && !stop.signal.aborted);
      isLoading = false;
    }

    again.current = () => {
      clearTimeout(timer);
      timer = setTimeout(() => void run(), GATHER_MILLISECONDS);
    };
    setData(undefined);
    setError(undefined);
    void run();
    const leave = onLive((event) => {
      if (event.kind === "reload" || kinds.includes(event.kind)) again.current();
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
      leave();
    };
  }, dependencies);

  return { data, error, reload: useCallback(() => again.current(), []), set: useCallback((value: T) => setData(() => value), []) };
}

/** Run an action of a button: what fails is said in a toast, and the button waits. */
export function useAction(): [boolean, (work: () => Promise<unknown>) => Promise<boolean>] {
  const [isBusy, setBusy] = useState(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await work();
      return true;
    } catch (error) {
      toast((error as Error).message, "error");
      return false;
    } finally {
      setBusy(false);
    }
  }, []);
  return [isBusy, run];
}

/** Render again every so often, for ages that are shown. Stops while the window is hidden. */
export function useTick(milliseconds: number): void {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && set((count) => (count + 1) % 1000), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

export function useConnectionBack(onBack: () => void): void {
  const was = useRef(connection.value);
  useEffect(
    () =>
      connection.subscribe((state) => {
        if (state === "open" && was.current === "lost") onBack();
        was.current = state;
      }),
    [],
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Hermes`;
  }, [title]);
}

const narrow = matchMedia("(max-width: 820px)"); // as in the styles

/** Whether a drawer has to hold its contents: beside the page always, on a phone from the first time it is opened. */
export function useDrawer(isOpen: boolean): boolean {
  const [isNeeded, setNeeded] = useState(isOpen || !narrow.matches);
  if (isOpen && !isNeeded) setNeeded(true);
  useEffect(() => {
    const look = () => { if (!narrow.matches) setNeeded(true); };
    look();
    narrow.addEventListener("change", look);
    return () => narrow.removeEventListener("change", look);
  }, []);
  return isNeeded || isOpen;
}

export function useLater<T>(value: T, milliseconds: number): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(() => value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return late;
}
