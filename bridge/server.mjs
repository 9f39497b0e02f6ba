/** The contract, by HTTP on loopback. */

import { createHash, timingSafeEqual } from "node:crypto";
import http from "node:http";

import { kindOf } from "./log.mjs";
import { Refusal, badRequest } from "./refusal.mjs";

const MOST_BODY = 1024 * 1024;
const MOST_WAIT_SECONDS = 60;

/** `routes` maps "POST /send" to `async ({query, body, rest, signal}) => answer`; a path that ends in / takes the rest. */
export function makeServer({ routes, token, log }) {
    const digest = sha256(`Bearer ${token}`);
    const server = http.createServer(async (request, response) => {
        const gone = new AbortController();
        response.on("close", () => gone.abort());
        try {
            if (!timingSafeEqual(sha256(request.headers.authorization ?? ""), digest))
                throw new Refusal(401, "wrong_token", "The token is wrong.");
            answer(response, 200, await route(routes, request, gone.signal));
        } catch (error) {
            if (!(error instanceof Refusal))
                log.error("A call failed", { call: request.url.split("?")[0].split("/")[1], ...kindOf(error) });
            const refusal =
                error instanceof Refusal ? error : new Refusal(500, "failed", "The bridge could not do it.");
            answer(response, refusal.status, { error: refusal.message, code: refusal.code, ...refusal.more });
        }
    });
    server.keepAliveTimeout = 60_000;
    return server;
}

async function route(routes, request, signal) {
    const url = new URL(request.url, "http://bridge");
    const [, first, ...rest] = url.pathname.split("/");
    const call = routes[`${request.method} /${first}${rest.length ? "/" : ""}`];
    if (!call) throw new Refusal(404, "no_such_call", "There is no such call.");
    const body = request.method === "POST" ? await bodyOf(request) : {};
    return call({ query: url.searchParams, body, rest: decoded(rest.join("/")), signal });
}

async function bodyOf(request) {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
        size += chunk.length;
        if (size <= MOST_BODY) chunks.push(chunk);
    }
    if (size > MOST_BODY) throw badRequest("The body is too large."); // read to its end, or the answer would not arrive
    let body;
    try {
        body = JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}");
    } catch {
        throw badRequest("The body is no JSON.");
    }
    if (body === null || typeof body !== "object" || Array.isArray(body))
        throw badRequest("The body must be a JSON object.");
    return body;
}

function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        throw badRequest("The path cannot be read.");
    }
}

function answer(response, status, body) {
    if (response.destroyed) return;
    const text = JSON.stringify(body);
    response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
}

/** The wait that a query asks for, in milliseconds. */
export function waitOf(query) {
    return Math.min(wholeNumber(query.get("wait") ?? "0", "wait"), MOST_WAIT_SECONDS) * 1000;
}

export function wholeNumber(value, name) {
    const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
    if (Number.isSafeInteger(number) && number >= 0) return number;
    throw badRequest(`${name} must be a whole number.`);
}

const sha256 = text => createHash("sha256").update(text).digest();
