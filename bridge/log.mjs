/** What the bridge says while it works: one JSON object per line, with no message, no key and no number in it. */

const LONG_NUMBER = /\d{7,}/g; // phone numbers and ids
const MOST_TEXT = 200;

export function makeLog(write = line => process.stderr.write(line)) {
    const at =
        level =>
        (text, fields = {}) =>
            write(`${JSON.stringify({ level, text, ...fields })}\n`);
    return { info: at("info"), warn: at("warning"), error: at("error") };
}

/** How an error is told: its kind and code. Its own words may quote what it choked on. */
export function kindOf(error) {
    const code = error?.output?.statusCode ?? error?.code ?? null;
    return { error: error?.name ?? typeof error, ...(code === null ? {} : { code }) };
}

/** The library's logger: the objects it is handed hold messages and keys, so only the fixed words go on. */
export function libraryLog(log) {
    const say = level => (first, second) => {
        const words = typeof first === "string" ? first : second;
        if (typeof words === "string")
            log[level](words.slice(0, MOST_TEXT).replace(LONG_NUMBER, "…"), { from: "baileys" });
    };
    const nothing = () => {};
    const quiet = {
        level: "warn",
        trace: nothing,
        debug: nothing,
        info: nothing,
        warn: say("warn"),
        error: say("error"),
    };
    quiet.child = () => quiet;
    return quiet;
}

/** The Signal library prints whole sessions, private keys included, to the console: nothing of that is shown. */
export function silenceConsole() {
    for (const name of ["log", "info", "warn", "error", "debug", "trace"]) console[name] = () => {};
}
