/** Something was asked that cannot be done; whoever asked reads the sentence and acts on the code. */
export class Refusal extends Error {
    constructor(status, code, sentence, more = {}) {
        super(sentence);
        this.status = status;
        this.code = code;
        this.more = more;
    }
}

export const badRequest = sentence => new Refusal(400, "bad_request", sentence);
