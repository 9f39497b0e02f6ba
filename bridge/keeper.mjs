/** Keeps one WhatsApp socket up: the library makes connections and never mends them. */

import { DisconnectReason, jidNormalizedUser } from "baileys";

import { kindOf } from "./log.mjs";
import { Refusal } from "./refusal.mjs";
import { Registration } from "./registration.mjs";

const LOGGED_OUT = new Set([
    DisconnectReason.loggedOut,
    DisconnectReason.forbidden,
    DisconnectReason.multideviceMismatch,
]);
const STEADY_FACTOR = 10; // a connection that held ten first delays starts the backoff anew
const END_MS = 1200;

export class Keeper {
    status = "starting";
    code = null;
    since = now();
    qr = null;
    qrCount = 0;
    #session;
    #makeSocket;
    #options;
    #prepare;
    #backoff;
    #onEvent;
    #log;
    #socket = null;
    #registration = null;
    #openedAt = 0;
    #restartedAt = -Infinity;
    #failures = 0;
    #timer = null;
    #isStopping = false;
    #watchers = new Set();

    /**
     * `prepare({isNew, code})` is waited for before each connection, whose `options()` are asked for then.
     * `onEvent(name, data)` hears of each event when the library emits it, before it is buffered or merged with others.
     */
    constructor({ session, makeSocket, prepare, options, backoff, onEvent, log }) {
        this.#session = session;
        this.#makeSocket = makeSocket;
        this.#options = options;
        this.#prepare = prepare;
        this.#backoff = backoff;
        this.#onEvent = onEvent;
        this.#log = log;
    }

    get me() {
        const me = this.#session.isLinked ? this.#session.creds.me : null;
        return me
            ? { id: jidNormalizedUser(me.id), lid: me.lid ? jidNormalizedUser(me.lid) : "", name: me.name ?? "" }
            : null;
    }

    async start() {
        await this.#session.load();
        await this.#connect();
    }

    /** The socket of an open connection; refuses when there is none. */
    socket() {
        if (this.status === "connected") return this.#socket;
        throw new Refusal(503, "not_connected", `WhatsApp is not connected (${this.status}).`);
    }

    async #connect() {
        this.#timer = null;
        this.qr = null;
        const isNew = !this.#session.isLinked;
        if (isNew) this.#session.renew();
        const { code } = this;
        this.#become("connecting", code);
        await this.#prepare({ isNew, code });
        if (this.#isStopping) return;
        const { creds, keys } = this.#session;
        const socket = this.#makeSocket({ ...this.#options(), auth: { creds, keys } });
        this.#socket = socket;
        const onQr = qr => this.#shows(socket, qr);
        this.#registration = isNew ? new Registration({ creds, socket, onQr, log: this.#log }) : null;
        this.#tap(socket);
        socket.ev.on("creds.update", change => this.#keep(socket, change));
        socket.ev.on("connection.update", update => this.#follow(socket, update));
    }

    /**
     * The library collects events and hands them on later, and throws the collection away when the connection ends;
     * by then it has told WhatsApp that they arrived. So they are taken where they enter.
     */
    #tap(socket) {
        const emit = socket.ev.emit;
        socket.ev.emit = (name, data) => {
            try {
                this.#onEvent(name, data, socket);
            } catch (error) {
                this.#log.error("An event could not be taken", { event: name, ...kindOf(error) });
            }
            return emit.call(socket.ev, name, data);
        };
    }

    #keep(socket, change) {
        if (socket !== this.#socket) return;
        Object.assign(this.#session.creds, change);
        this.#session.save().catch(error => this.#log.error("The session could not be saved", kindOf(error)));
    }

    #follow(socket, { connection, lastDisconnect, qr, isNewLogin }) {
        if (socket !== this.#socket || this.#isStopping) return;
        if (isNewLogin) this.#linked();
        if (qr) this.#registration?.show(qr);
        if (connection === "open") this.#opened();
        if (connection === "close") this.#closed(lastDisconnect?.error);
    }

    #shows(socket, qr) {
        if (socket !== this.#socket) return;
        this.qr = qr;
        this.qrCount += 1;
        this.#become("waiting_for_scan", null);
    }

    #linked() {
        this.#log.info("This device was linked");
        this.#session.noteLink().catch(error => this.#log.error("The link could not be noted", kindOf(error)));
    }

    #opened() {
        this.#openedAt = Date.now();
        this.qr = null;
        this.#become("connected", null);
        this.#log.info("Connected");
    }

    #closed(error) {
        const code = error?.output?.statusCode ?? null;
        this.#socket = null;
        this.qr = null;
        const next = afterClose(code);
        if (next === "logged_out") this.#leave(code);
        else if (next === "replaced") this.#stay("replaced", code);
        else this.#tryAgain(code, next === "at_once");
    }

    #leave(code) {
        const done = () => this.#stay("logged_out", code);
        this.#session.setAside().then(done, error => {
            this.#log.error("The session could not be set aside", kindOf(error));
            done();
        });
    }

    #stay(status, code) {
        this.#log.error("The connection ended for good", { status, code });
        this.#become(status, code);
    }

    #tryAgain(code, isAskedFor) {
        const isAtOnce = isAskedFor && this.#mayRestart(); // a server that asks for nothing else is not obeyed blindly
        if (this.#openedAt && Date.now() - this.#openedAt >= STEADY_FACTOR * this.#backoff.first) this.#failures = 0;
        this.#openedAt = 0;
        const delay = isAtOnce ? 0 : pauseAfter(this.#failures, this.#backoff, Math.random());
        if (!isAtOnce) this.#failures += 1;
        this.#log.warn("Disconnected", { code, reconnect_in: Math.round(delay) / 1000 });
        this.#become("disconnected", code);
        this.#timer = setTimeout(() => this.#connectAgain(), delay);
    }

    async #connectAgain() {
        try {
            await this.#connect();
        } catch (error) {
            this.#log.error("A connection could not be begun", kindOf(error));
            this.#tryAgain(null, false);
        }
    }

    #mayRestart() {
        const isRare = Date.now() - this.#restartedAt >= STEADY_FACTOR * this.#backoff.first;
        this.#restartedAt = Date.now();
        return isRare;
    }

    #become(status, code) {
        if (status !== this.status) this.since = now();
        this.status = status;
        this.code = code;
        for (const look of this.#watchers) look();
    }

    /** Returns once the status is another, the time is over or nobody waits any more. */
    async changed(from, milliseconds, signal) {
        if (this.status !== from || milliseconds <= 0 || signal.aborted) return;
        await new Promise(resolve => {
            const done = () => {
                clearTimeout(timer);
                this.#watchers.delete(look);
                signal.removeEventListener("abort", done);
                resolve();
            };
            const look = () => this.status !== from && done();
            const timer = setTimeout(done, milliseconds);
            this.#watchers.add(look);
            signal.addEventListener("abort", done);
        });
    }

    /** Resolves with what `promise` gives; rejects with `gone()` as soon as this socket's connection is over. */
    async whileOpen(socket, promise, gone) {
        let look;
        const lost = new Promise((_, reject) => {
            look = () => (this.#socket !== socket || this.status !== "connected") && reject(gone());
            this.#watchers.add(look);
            look();
        });
        try {
            return await Promise.race([promise, lost]);
        } finally {
            this.#watchers.delete(look);
        }
    }

    async pair(phone) {
        if (this.status !== "waiting_for_scan") {
            const words = `A code can be asked for while a device waits to be linked, and it is ${this.status}.`;
            throw new Refusal(409, "not_waiting", words);
        }
        return this.#registration.pairingCode(phone);
    }

    async logout() {
        await this.socket().logout();
    }

    /** Ends the connection, in little time whatever WhatsApp does, and saves the session. */
    async stop() {
        this.#isStopping = true;
        clearTimeout(this.#timer);
        const socket = this.#socket;
        this.#become("disconnected", this.code);
        await Promise.race([
            Promise.resolve(socket?.end(undefined)).catch(() => {}),
            new Promise(resolve => setTimeout(resolve, END_MS).unref()),
        ]);
        await this.#session.settle();
    }
}

/** What a connection's end means: the device is gone, somebody took over, a restart that was asked for, or a mishap. */
export function afterClose(code) {
    if (LOGGED_OUT.has(code)) return "logged_out";
    if (code === DisconnectReason.connectionReplaced) return "replaced";
    return code === DisconnectReason.restartRequired ? "at_once" : "later";
}

/** Doubling pauses in milliseconds, the upper half of each by chance, so that many do not come back together. */
export function pauseAfter(failures, { first, most }, chance) {
    const longest = Math.min(most, 2 * first * 2 ** Math.min(failures, 20));
    return longest / 2 + (longest / 2) * chance;
}

function now() {
    return Date.now() / 1000;
}
