/** From what the library emits to items in the spool. */

import { jidNormalizedUser, normalizeMessageContent, proto } from "baileys";

import { isOfHermes } from "./ids.mjs";
import { isMe, itemOf, number, unreadableItem } from "./items.mjs";
import { kindOf } from "./log.mjs";
import { openEdit, openVote } from "./sealed.mjs";

const HISTORY_SLACK_SECONDS = 60;
const FRESH_SECONDS = 3600; // after a link, in which history comes; later on a clock that was wrong then does no harm
const SEALED_EDIT = proto.Message.SecretEncryptedMessage.SecretEncType.MESSAGE_EDIT;
const EDIT = proto.Message.ProtocolMessage.Type.MESSAGE_EDIT;

export class Inbound {
    #spool;
    #sent;
    #heard;
    #people;
    #groups;
    #me;
    #linkedAt;
    #log;

    /** `me()` is our account, `linkedAt()` the second in which this device was linked (0: not known). */
    constructor({ spool, sent, heard, people, groups, me, linkedAt, log }) {
        this.#spool = spool;
        this.#sent = sent;
        this.#heard = heard;
        this.#people = people;
        this.#groups = groups;
        this.#me = me;
        this.#linkedAt = linkedAt;
        this.#log = log;
    }

    take(name, data, socket) {
        switch (name) {
            case "messages.upsert":
                for (const message of data.messages) this.#takeMessage(message, data.type, socket);
                return;
            case "messaging-history.set": // of old messages nobody waits for an answer; names and numbers are welcome
                for (const contact of data.contacts ?? []) this.#people.learnContact(contact);
                for (const { lid, pn } of data.lidPnMappings ?? []) this.#people.learnPair(lid, pn);
                return;
            case "lid-mapping.update":
                this.#people.learnPair(data.lid, data.pn);
                return;
            case "contacts.upsert":
            case "contacts.update":
                for (const contact of data) this.#people.learnContact(contact);
                return;
            default:
                this.#groups.take(name, data);
        }
    }

    #takeMessage(message, type, socket) {
        if (this.#isOurs(message?.key)) return;
        if (this.#isHistory(message, type)) return;
        let item;
        try {
            this.#people.learnSender(message);
            message = this.#unsealed(message);
            item = itemOf(message, this.#context());
        } catch (error) {
            this.#log.warn("A message could not be read; it is handed on as it is", kindOf(error));
            item = unreadableItem(message, error);
        }
        if (item === null) return this.#tellOfSilence(message);
        if (item.isGroup && !item.chatName) item.chatName = this.#groups.nameOf(item.chatId, socket);
        if (item.kind === "message") this.#heard.keep(item.chatId, item.messageId, message);
        if (item.kind === "edit")
            this.#heard.keep(item.chatId, item.messageId, { key: message.key, message: editedIn(message) });
        this.#spool.add(item);
    }

    /** Heard as an answer, what we say would be answered without end. */
    #isOurs(key) {
        return key?.fromMe === true && (isOfHermes(key.id) || this.#sent.get(key.id) !== undefined);
    }

    /** Said before this device was linked, and not while it was away. */
    #isHistory(message, type) {
        const linkedAt = this.#linkedAt();
        const sentAt = number(message?.messageTimestamp);
        const isFresh = Math.abs(Date.now() / 1000 - linkedAt) < FRESH_SECONDS;
        return type === "append" && isFresh && sentAt > 0 && sentAt < linkedAt - HISTORY_SLACK_SECONDS;
    }

    #context() {
        const me = this.#me();
        return {
            me,
            phoneOf: jid => this.#people.phoneOf(jid),
            nameOf: jid => this.#people.nameOf(jid),
            openVote: (update, item) => this.#openVote(update, item, me),
        };
    }

    /** Newer phones seal an edit with the secret of the message that it changes: it is opened into the older form. */
    #unsealed(message) {
        const sealed = normalizeMessageContent(message.message)?.secretEncryptedMessage;
        if (sealed?.secretEncType !== SEALED_EDIT || !sealed.targetMessageKey?.id) return message;
        const { remoteJid, participant } = message.key;
        const targetId = sealed.targetMessageKey.id;
        const secret = this.#heard.recall(jidNormalizedUser(remoteJid), targetId)?.message?.messageContextInfo
            ?.messageSecret;
        const senders = this.#people.idsOf(participant || remoteJid);
        const editedMessage = openEdit(sealed, { targetId, secret, senders });
        if (editedMessage)
            return { ...message, message: { protocolMessage: { key: { id: targetId }, type: EDIT, editedMessage } } };
        this.#log.warn("An edit could not be opened: the message that it changes is not known, or has another secret");
        return message;
    }

    #openVote({ pollCreationMessageKey, vote }, { senderId }, me) {
        const pollId = pollCreationMessageKey.id;
        const poll = this.#sent.get(pollId)?.poll;
        if (!poll) return null;
        const voters = isMe(senderId, me) ? [me.id, me.lid] : this.#people.idsOf(senderId);
        return openVote(vote, {
            pollId,
            secret: Buffer.from(poll.secret, "base64"),
            options: poll.options,
            creators: [me?.id, me?.lid].filter(Boolean),
            voters: voters.filter(Boolean),
        });
    }

    #tellOfSilence(message) {
        if (message?.messageStubType === proto.WebMessageInfo.StubType.CIPHERTEXT) {
            this.#log.warn("A message could not be decrypted; its sender was asked for it again");
        }
    }
}

const editedIn = message => normalizeMessageContent(message.message).protocolMessage.editedMessage;
