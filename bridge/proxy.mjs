/** Ways out through a proxy: HTTP (CONNECT) and SOCKS5, for the socket, for uploads and for downloads. */

import https from "node:https";
import net from "node:net";
import tls from "node:tls";

const TUNNEL_MS = 20_000;
const SCHEMES = { "http:": 80, "https:": 443, "socks5:": 1080, "socks5h:": 1080 };

/** An agent for everything that goes out by HTTPS; undefined without a proxy. */
export function agentFor(proxy) {
    return proxy ? new TunnelAgent(proxy) : undefined;
}

class TunnelAgent extends https.Agent {
    #proxy;

    constructor(proxy) {
        super({ keepAlive: false });
        this.#proxy = proxy;
    }

    createConnection(options, done) {
        const { host, port } = options;
        tunnel(this.#proxy, host, Number(port)).then(socket => {
            const secure = tls.connect({
                ...options,
                host: undefined,
                path: undefined,
                socket,
                servername: options.servername || host,
            });
            done(null, secure);
        }, done);
    }
}

/** The built-in fetch takes no agent; the library fetches files, history and a version with it, and needs no more. */
export function fetchThrough(agent) {
    return (address, { headers, signal } = {}) =>
        new Promise((resolve, reject) => {
            const request = https.get(address, { agent, headers, signal }, response => {
                const status = response.statusCode ?? 0;
                const ok = status >= 200 && status < 300;
                if (!ok) response.resume();
                resolve({ ok, status, body: response, text: () => textOf(response) });
            });
            request.setTimeout(TUNNEL_MS, () => request.destroy(new Error("the server is silent")));
            request.on("error", reject);
        });
}

async function textOf(stream) {
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
}

/** The address of a proxy, checked. */
export function proxyOf(address) {
    let proxy;
    try {
        proxy = new URL(address);
    } catch {
        throw new Error("HERMES_BRIDGE_PROXY is no address"); // which may hold a password
    }
    if (proxy.protocol in SCHEMES && proxy.hostname) return proxy;
    throw new Error(`HERMES_BRIDGE_PROXY must begin with ${Object.keys(SCHEMES).join("//, ")}//`);
}

/** A plain connection to the host, made by the proxy; it also looks up the name. */
async function tunnel(proxy, host, port) {
    const socket = open(proxy);
    const timer = setTimeout(() => socket.destroy(new Error("the proxy is silent")), TUNNEL_MS);
    try {
        await new Promise((resolve, reject) =>
            socket.once("error", reject).once(proxy.protocol === "https:" ? "secureConnect" : "connect", resolve),
        );
        await (proxy.protocol.startsWith("socks")
            ? askSocks(socket, proxy, host, port)
            : askHttp(socket, proxy, host, port));
        return socket;
    } catch (error) {
        socket.destroy();
        throw Object.assign(new Error("the proxy does not let us through"), { code: error.code ?? "EPROXY" });
    } finally {
        clearTimeout(timer);
    }
}

function open(proxy) {
    const place = { host: proxy.hostname.replace(/^\[|\]$/g, ""), port: Number(proxy.port || SCHEMES[proxy.protocol]) };
    return proxy.protocol === "https:"
        ? tls.connect({ ...place, servername: net.isIP(place.host) ? undefined : place.host })
        : net.connect(place);
}

const loginOf = proxy => [proxy.username, proxy.password].map(decodeURIComponent);

async function askHttp(socket, proxy, host, port) {
    const place = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
    const login = proxy.username
        ? [`Proxy-Authorization: Basic ${Buffer.from(loginOf(proxy).join(":")).toString("base64")}`]
        : [];
    socket.write([`CONNECT ${place} HTTP/1.1`, `Host: ${place}`, ...login, "", ""].join("\r\n"));
    const head = await read(socket, got => {
        const end = got.indexOf("\r\n\r\n");
        return end < 0 ? -1 : end + 4;
    });
    if (!/^HTTP\/1\.[01] 2\d\d /.test(head.toString("latin1"))) throw new Error("refused");
}

async function askSocks(socket, proxy, host, port) {
    const method = proxy.username ? 2 : 0;
    socket.write(Buffer.from([5, 1, method]));
    if ((await read(socket, exactly(2)))[1] !== method) throw new Error("no way to log in");
    if (method === 2) {
        const [user, password] = loginOf(proxy).map(word => Buffer.from(word));
        socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]));
        if ((await read(socket, exactly(2)))[1] !== 0) throw new Error("the login is wrong");
    }
    const name = Buffer.from(host);
    socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]));
    const answer = await read(socket, wholeSocksAnswer);
    if (answer[1] !== 0) throw new Error("refused");
}

function wholeSocksAnswer(got) {
    if (got.length < 5) return -1;
    const size = { 1: 10, 3: 7 + got[4], 4: 22 }[got[3]] ?? 5;
    return got.length < size ? -1 : size;
}

const exactly = size => got => (got.length < size ? -1 : size);

/** What the proxy says first; `sizeOf` tells how much of it belongs together, or -1 while some is missing. */
function read(socket, sizeOf) {
    return new Promise((resolve, reject) => {
        let got = Buffer.alloc(0);
        const finish = (act, value) => {
            socket.off("data", take).off("error", fail).off("close", fail);
            act(value);
        };
        const fail = error => finish(reject, error instanceof Error ? error : new Error("the proxy hung up"));
        const take = chunk => {
            got = Buffer.concat([got, chunk]);
            const size = sizeOf(got);
            if (size < 0) return;
            socket.pause();
            if (got.length > size) socket.unshift(got.subarray(size));
            finish(resolve, got.subarray(0, size));
        };
        socket.on("data", take).on("error", fail).on("close", fail);
        socket.resume();
    });
}
