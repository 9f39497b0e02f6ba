/** Votes in polls of ours: only the poll's own secret opens them, and only together with the right two ids. */

import { decryptPollVote } from "baileys";
import { createHash } from "node:crypto";

/**
 * The names that somebody chose (none: the vote was taken back), or null when nothing fits.
 *
 * A vote is sealed with the ids of both sides as the voter's phone writes them, by number or hidden; each is tried.
 */
export function openVote(vote, { pollId, secret, options, creators, voters }) {
    if (!vote?.encPayload?.length || !vote?.encIv?.length) return null;
    for (const pollCreatorJid of creators) {
        for (const voterJid of voters) {
            const opened = tryOpen(vote, { pollMsgId: pollId, pollEncKey: secret, pollCreatorJid, voterJid });
            if (opened) return chosenNames(opened.selectedOptions ?? [], options);
        }
    }
    return null;
}

function tryOpen(vote, poll) {
    try {
        return decryptPollVote(vote, poll);
    } catch {
        return null; // sealed with other ids; the next pair is tried
    }
}

function chosenNames(hashes, options) {
    const names = new Map(options.map(name => [createHash("sha256").update(name).digest("hex"), name]));
    return hashes.map(hash => names.get(Buffer.from(hash).toString("hex"))).filter(name => name !== undefined);
}
