/** Who is who: WhatsApp knows a person by a number and by an id that hides it (`…@lid`), and uses either. */

import { isLidUser, isPnUser, jidDecode, jidNormalizedUser } from "baileys";

import { Remembered } from "./remembered.mjs";

const MOST_PEOPLE = 20_000;

export class People {
    #known;
    #numbers = new Map(); // id of the number → hidden id

    constructor(folder, log) {
        this.#known = new Remembered(folder, "people", MOST_PEOPLE, log);
        for (const [lid, { phone }] of this.#known.entries()) if (phone) this.#numbers.set(phone, lid);
    }

    /** Both ids belong to one person; either order. */
    learnPair(one, other) {
        const [lid, phone] = isLidUser(one) ? [one, other] : [other, one];
        if (!isLidUser(lid) || !isPnUser(phone)) return;
        const id = jidNormalizedUser(lid);
        const number = jidDecode(phone)?.user;
        if (!number || this.#known.get(id)?.phone === number) return;
        this.#known.note(id, { phone: number });
        this.#numbers.set(number, id);
    }

    /** `kind` is "name" for what the owner calls them, "push" for what they call themselves. */
    #learnName(jid, kind, name) {
        const id = jidNormalizedUser(jid);
        if (id && typeof name === "string" && name && this.#known.get(id)?.[kind] !== name)
            this.#known.note(id, { [kind]: name });
    }

    /** WhatsApp says that there is somebody with this number. */
    learnReachable(jid) {
        this.#known.note(jidNormalizedUser(jid), { isReachable: true });
    }

    /** Somebody who was met before need not be asked for. */
    isKnown(jid) {
        return this.#known.get(jidNormalizedUser(jid)) !== undefined || this.idsOf(jid).some(isLidUser);
    }

    learnContact({ id, lid, phoneNumber, name, notify, verifiedName }) {
        this.learnPair(id, lid ?? phoneNumber);
        this.#learnName(id, "name", name);
        this.#learnName(id, "push", notify || verifiedName);
    }

    learnSender({ key, pushName }) {
        const sender = key?.participant || key?.remoteJid;
        this.learnPair(sender, key?.participantAlt || key?.remoteJidAlt);
        if (!key?.fromMe) this.#learnName(sender, "push", pushName);
    }

    /** The digits of somebody's number, or "" when only the hidden id is known. */
    phoneOf(jid) {
        if (isPnUser(jid)) return jidDecode(jid)?.user ?? "";
        return this.#known.get(jidNormalizedUser(jid))?.phone ?? "";
    }

    nameOf(jid) {
        const known = this.#known.get(jidNormalizedUser(jid));
        return known?.name ?? known?.push ?? "";
    }

    /** Every id under which the person may act. */
    idsOf(jid) {
        const id = jidNormalizedUser(jid);
        const phone = this.phoneOf(id);
        const lid = isLidUser(id) ? id : this.#numbers.get(phone);
        return [...new Set([id, phone && `${phone}@s.whatsapp.net`, lid].filter(Boolean))];
    }
}
