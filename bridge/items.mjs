/** What WhatsApp delivers, as an item of the contract. Pure: whatever is handed in, an item, null or an error comes out. */

import {
    areJidsSameUser,
    getContentType,
    isJidBroadcast,
    isJidGroup,
    isJidNewsletter,
    isJidStatusBroadcast,
    isPnUser,
    jidDecode,
    jidNormalizedUser,
    normalizeMessageContent,
    proto,
} from "baileys";

const MEDIA = {
    imageMessage: "image",
    videoMessage: "video",
    ptvMessage: "video",
    audioMessage: "audio",
    documentMessage: "document",
    stickerMessage: "sticker",
};
const WITHOUT_WORDS = new Set([
    "reactionMessage",
    "encReactionMessage",
    "albumMessage",
    "pinInChatMessage",
    "keepInChatMessage",
    "messageContextInfo",
    "senderKeyDistributionMessage",
    "encEventResponseMessage",
    "pollResultSnapshotMessage",
]);
const MOST_RAW = 100_000;
const { REVOKE, MESSAGE_EDIT } = proto.Message.ProtocolMessage.Type;

/**
 * Says what a message holds, or null when there is nothing in it for anybody to read.
 *
 * `me` is our account ({id, lid}), `phoneOf` and `nameOf` tell of a jid, `openVote(update, voter)` gives the names of
 * the options that somebody chose, or null when it is no poll of ours.
 */
export function itemOf(message, { me, phoneOf, nameOf, openVote }) {
    const content = normalizeMessageContent(message.message);
    const type = getContentType(content);
    if (isForNobody(message, content, type)) return null;
    const item = envelopeOf(message, { me, phoneOf, nameOf });
    if (type === "protocolMessage") return protocolItem(item, content.protocolMessage, me);
    if (type === "pollUpdateMessage") return voteItem(item, content.pollUpdateMessage, openVote);
    return { ...item, kind: "message", ...contentOf(content, type, me) };
}

function isForNobody(message, content, type) {
    const chat = message.key?.remoteJid;
    if (typeof chat === "string" && (isJidStatusBroadcast(chat) || isJidNewsletter(chat))) return true;
    return !content || !type || WITHOUT_WORDS.has(type);
}

function envelopeOf(message, { me, phoneOf, nameOf }) {
    const { key } = message;
    const messageId = text(key?.id);
    const remote = jidNormalizedUser(text(key?.remoteJid));
    if (!messageId || !remote) throw new TypeError("the message has no id or no chat");
    const fromMe = key.fromMe === true;
    const isGroup = isJidGroup(remote) === true;
    const sender = jidNormalizedUser(fromMe ? text(me?.id) : text(key.participant) || remote);
    const chatId = isJidBroadcast(remote) ? sender : remote; // a list of one's own is answered in private
    const senderPhone =
        numberOf(sender) ||
        numberOf(text(key.participantAlt)) ||
        (isGroup || fromMe ? "" : numberOf(text(key.remoteJidAlt))) ||
        phoneOf(sender);
    return {
        messageId,
        chatId,
        chatPhone: isGroup ? "" : numberOf(chatId) || numberOf(text(key.remoteJidAlt)) || phoneOf(chatId),
        chatName: nameOf(chatId),
        isGroup,
        senderId: sender,
        senderPhone,
        senderName: fromMe ? text(me?.name) : text(message.pushName) || text(message.verifiedBizName) || nameOf(sender),
        fromMe,
        fromOwner: fromMe,
        isSelfChat: isMe(chatId, me),
        timestamp: number(message.messageTimestamp),
    };
}

function protocolItem(item, protocol, me) {
    const targetId = text(protocol?.key?.id);
    if (protocol?.type === REVOKE && targetId) return { ...item, kind: "delete", targetId };
    if (protocol?.type !== MESSAGE_EDIT || !targetId) return null;
    const content = normalizeMessageContent(protocol.editedMessage);
    const type = getContentType(content);
    return type ? { ...item, kind: "edit", targetId, ...contentOf(content, type, me) } : null;
}

function voteItem(item, update, openVote) {
    const pollId = text(update?.pollCreationMessageKey?.id);
    const options = pollId ? openVote(update, item) : null;
    return options === null ? null : { ...item, kind: "vote", pollId, options };
}

function contentOf(content, type, me) {
    const inner = content[type];
    const context = (typeof inner === "object" && inner?.contextInfo) || {};
    const mediaType = MEDIA[type] ?? "";
    return {
        body: bodyOf(content, type),
        ...mediaOf(inner, mediaType, type),
        ...quoteOf(context, me),
        mentions: strings(context.mentionedJid),
        isForwarded: context.isForwarded === true,
        albumId: text(content.messageContextInfo?.messageAssociation?.parentMessageKey?.id),
        nativeType: type,
        nativeMetadata: metadataOf(inner, type),
    };
}

function mediaOf(inner, mediaType, type) {
    return {
        hasMedia: mediaType !== "",
        mediaType,
        mediaUrls: [],
        mime: mediaType ? text(inner.mimetype) : "",
        fileName: mediaType ? text(inner.fileName) : "",
        size: mediaType ? number(inner.fileLength) : 0,
        seconds: mediaType ? number(inner.seconds) : 0,
        voice: type === "audioMessage" && inner.ptt === true,
    };
}

function quoteOf(context, me) {
    const quotedMessageId = text(context.stanzaId);
    const quotedParticipant = jidNormalizedUser(text(context.participant));
    const content = normalizeMessageContent(context.quotedMessage);
    const type = getContentType(content);
    return {
        hasQuotedMessage: quotedMessageId !== "",
        quotedMessageId,
        quotedParticipant,
        quotedFromMe: quotedParticipant !== "" && isMe(quotedParticipant, me),
        quotedText: type ? bodyOf(content, type) : "",
    };
}

/** The words in it: a text, a caption, the question of a poll, what somebody chose from a list. */
function bodyOf(content, type) {
    const inner = content[type];
    if (typeof inner === "string") return inner;
    if (typeof inner !== "object" || inner === null) return "";
    const words = [
        inner.text,
        inner.caption,
        inner.selectedDisplayText,
        inner.title,
        inner.contentText,
        inner.hydratedTemplate?.hydratedContentText,
        inner.body?.text,
        inner.name,
        inner.displayName,
        inner.address,
    ];
    return words.map(text).find(Boolean) ?? "";
}

function metadataOf(inner, type) {
    if (typeof inner !== "object" || inner === null) return {};
    switch (type) {
        case "locationMessage":
        case "liveLocationMessage":
            return {
                latitude: decimal(inner.degreesLatitude),
                longitude: decimal(inner.degreesLongitude),
                name: text(inner.name),
                address: text(inner.address),
            };
        case "contactMessage":
            return { contacts: [contactOf(inner)] };
        case "contactsArrayMessage":
            return { contacts: (Array.isArray(inner.contacts) ? inner.contacts : []).map(contactOf) };
        case "pollCreationMessage":
        case "pollCreationMessageV2":
        case "pollCreationMessageV3":
            return {
                options: (Array.isArray(inner.options) ? inner.options : []).map(option => text(option?.optionName)),
            };
        case "videoMessage":
            return inner.gifPlayback === true ? { isGif: true } : {};
        default:
            return {};
    }
}

function contactOf(contact) {
    return { name: text(contact?.displayName), vcard: text(contact?.vcard) };
}

/** For something that could not be read: who and where as far as can be told, and all of it for later. */
export function unreadableItem(message, error) {
    return {
        messageId: text(message?.key?.id),
        chatId: text(message?.key?.remoteJid),
        kind: "unreadable",
        timestamp: number(message?.messageTimestamp),
        error: error?.name ?? "Error",
        raw: rawOf(message),
    };
}

function rawOf(message) {
    try {
        return (JSON.stringify(message) ?? String(message)).slice(0, MOST_RAW);
    } catch {
        return Object.prototype.toString.call(message); // something in it refuses to be written down
    }
}

export const isMe = (jid, me) =>
    Boolean(jid) && (areJidsSameUser(jid, text(me?.id)) || areJidsSameUser(jid, text(me?.lid)));

const numberOf = jid => (isPnUser(jid) ? (jidDecode(jid)?.user ?? "") : "");
const text = value => (typeof value === "string" ? value : "");
const strings = value => (Array.isArray(value) ? value.filter(each => typeof each === "string") : []);
const decimal = value => (typeof value === "number" && Number.isFinite(value) ? value : 0);

/** The library's 64-bit numbers, plain ones and digits; anything else is 0. */
export function number(value) {
    const plain =
        typeof value?.toNumber === "function" ? value.toNumber() : typeof value === "string" ? Number(value) : value;
    return typeof plain === "number" && Number.isFinite(plain) ? plain : 0;
}
