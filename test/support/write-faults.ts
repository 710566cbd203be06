import type { Fault } from './planted.ts'

/** Faults in the life of a write, by the file of src/exchange that has their text. */
export const writeFaults: Readonly<Record<string, readonly Fault[]>> = {
  'write/write-progress.ts': [
    {
      name: 'partly sent is not noted',
      right: "if (this.#state === 'not-sent') this.#advance('partly-sent')",
      wrong: "if (this.#state === 'open') this.#advance('partly-sent')",
    },
    {
      name: 'a partly sent write breaks off as not sent',
      right: "'partly-sent': ['sent', 'open', 'broken-off']",
      wrong: "'partly-sent': ['sent', 'open']",
    },
    {
      name: 'a sent write does not break off',
      right: "sent: ['open', 'broken-off']",
      wrong: "sent: ['open']",
    },
    {
      name: 'broken off counts as ended',
      right: "this.#advance('broken-off')\n  }",
      wrong: "this.#advance('open') && this.#advance('ended')\n  }",
    },
    {
      name: 'an illegal transition keeps its state',
      right: "    this.#state = 'broken-off'\n",
      wrong: '',
    },
    {
      name: 'the outcome of a write that broke off is told as known',
      right: "this.#state === 'ended' ? undefined : 'unknown'",
      wrong: "this.#state === 'ended' || this.#state === 'broken-off' ? undefined : 'unknown'",
    },
  ],
  'write/write-invalidator.ts': [
    {
      name: 'open does not quarantine',
      right: 'const release = cache.quarantineUntilReleased(tagsOf(invalidations))',
      wrong: 'const release = cache.quarantineUntilReleased([])',
    },
    {
      name: 'open does not drop',
      right: 'return this.#drop(this.#headInvalidations)',
      wrong: 'return undefined',
    },
    {
      name: 'the end does not drop again',
      right: 'return this.#finish(union(this.#headInvalidations, this.#invalidationsSoFar()))',
      wrong: 'return this.#finish([])',
    },
    {
      name: 'the end is computed for the configuration of the head',
      right: 'if (newest === this.#computedFor) return',
      wrong: 'if (this.#computedFor !== undefined) return',
    },
    {
      name: 'a break drops nothing',
      right:
        '            : union(this.#headInvalidations, writeInvalidations(this.#requestContext, undefined)),',
      wrong: '            : [],',
    },
    {
      name: 'a break drops what the head said alone',
      right: 'writeInvalidations(this.#requestContext, undefined)),',
      wrong: '[]),',
    },
    {
      name: 'nothing is dropped before a piece',
      right: 'beforePiece: () => this.#dropBeforePiece()',
      wrong: 'beforePiece: () => undefined',
    },
    {
      name: 'the quarantine of an open response is never released',
      right: '    this.#release?.()\n    this.#release = undefined',
      wrong: '    this.#release = undefined',
    },
    {
      name: 'an open response stays in the list of open ones',
      right: '    this.#removeOpen?.()\n',
      wrong: '',
    },
    {
      name: 'a broken response is not noticed',
      right: 'brokenOff: () => this.#breakOffStream()',
      wrong: 'brokenOff: () => undefined',
    },
    {
      name: 'other processes are not told of the end',
      right: 'return this.#deps.writeRegistry?.broadcast(invalidations, this.#registered)',
      wrong: 'return undefined',
    },
    {
      name: 'the registration of a write that was not sent stays',
      right:
        'if (this.#registered !== undefined) await this.#deps.writeRegistry?.broadcast([], this.#registered)',
      wrong: '',
    },
  ],
  'write/open-response.ts': [
    {
      name: 'a short response is whole',
      right: 'if (this.#declared !== undefined && this.#bytes !== this.#declared) this.#breakOff()',
      wrong: '',
    },
    {
      name: 'a piece does not wait for what is dropped before it',
      right: 'if (before === undefined) next(null, piece)',
      wrong: 'if (before !== null) next(null, piece)',
    },
    {
      name: 'a stream that is taken down is not broken off',
      right: '    this.#breakOff()\n    done(error)',
      wrong: '    done(error)',
    },
  ],
  'write.ts': [
    {
      name: 'a write does not wait for its registration',
      right: 'await write.invalidator.register()',
      wrong: 'void write.invalidator.register()',
    },
    {
      name: 'a failure breaks nothing off',
      right: '  await write.invalidator?.breakOff()\n',
      wrong: '',
    },
    {
      name: 'the head is forwarded before what it drops',
      right: '  await Promise.all(write.awaited)\n',
      wrong: '',
    },
  ],
}
