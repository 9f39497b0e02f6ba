/** A WhatsApp Web session behind a small HTTP contract; README.md tells it. */

import path from "node:path";

import { kindOf, makeLog, silenceConsole } from "./log.mjs";
import { proxyOf } from "./proxy.mjs";
import { makeServer } from "./server.mjs";

const STOP_MS = 1800;

function settings(environ) {
    const needed = name => {
        if (!environ[name]) throw new Error(`${name} is not set`);
        return environ[name];
    };
    const [first, most] = (environ.HERMES_BRIDGE_BACKOFF_MS ?? "1000,60000").split(",").map(Number);
    return {
        session: path.resolve(needed("HERMES_BRIDGE_SESSION")),
        spool: path.resolve(needed("HERMES_BRIDGE_SPOOL")),
        media: path.resolve(needed("HERMES_BRIDGE_MEDIA")),
        token: needed("HERMES_BRIDGE_TOKEN"),
        port: Number(environ.HERMES_BRIDGE_PORT ?? 0),
        socketModule: environ.HERMES_BRIDGE_SOCKET_MODULE,
        backoff: { first, most },
        version: environ.HERMES_BRIDGE_WA_VERSION,
        proxy: environ.HERMES_BRIDGE_PROXY ? proxyOf(environ.HERMES_BRIDGE_PROXY) : null,
    };
}

async function run() {
    silenceConsole();
    const log = makeLog();
    const config = settings(process.env);
    const { putTogether, routesOf } = await import("./bridge.mjs"); // the library takes its time: settings come first
    const parts = await putTogether(config, log);
    const server = makeServer({ routes: routesOf(parts), token: config.token, log });
    await new Promise((resolve, reject) => server.once("error", reject).listen(config.port, "127.0.0.1", resolve));
    stopWithParent(() => stop(parts, server));
    process.stdout.write(`${JSON.stringify({ listening: server.address().port })}\n`);
    await parts.keeper.start();
}

/** Whoever started us holds our stdin: when it closes they are gone, however they went. */
function stopWithParent(end) {
    let isStopping = false;
    const once = () => {
        if (isStopping) return;
        isStopping = true;
        setTimeout(() => process.exit(0), STOP_MS).unref();
        end().then(
            () => process.exit(0),
            () => process.exit(1),
        );
    };
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, once);
    for (const event of ["end", "close", "error"]) process.stdin.on(event, once);
    process.stdin.resume();
}

async function stop({ keeper, spool, sent }, server) {
    server.close();
    server.closeAllConnections();
    await keeper.stop();
    await Promise.all([spool.flush(), sent.flush()]);
    spool.close();
}

for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {}); // nobody reads: nothing to tell anybody
process.on("unhandledRejection", error => makeLog().error("A promise of the library failed", kindOf(error)));
process.on("uncaughtException", error => {
    makeLog().error("The bridge ends: something failed that nobody expected", kindOf(error));
    process.exit(1);
});

try {
    await run();
} catch (error) {
    makeLog().error(`The bridge cannot start: ${error.code === "EADDRINUSE" ? "its port is taken" : error.message}`);
    process.exit(2);
}
