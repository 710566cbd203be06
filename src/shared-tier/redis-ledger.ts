import { randomBytes } from 'node:crypto'
import type { Appended, Ledger, Push, Synced } from '../coherence/ledger.ts'
import { type ConnectionOptions, connect, connectorFor, type RunScript, scriptOn } from './connections.ts'
import { readAppended, readDone, readPush, readSynced } from './ledger-replies.ts'
import { ledgerScripts } from './ledger-scripts.ts'
import { type Listener, listen } from './listener.ts'
import type { Signatures } from './signatures.ts'

export type RedisLedgerOptions = ConnectionOptions & {
  /** In front of every key and channel: gateways with other content use another one. */
  readonly prefix: string
  readonly member: string
  readonly leaseMs: number
  readonly forgetAfterMs: number
  readonly changed: (state: 'up' | 'down') => void
  readonly signatures: { readonly notes: Signatures; readonly acknowledgements: Signatures }
}

/** As many as a member of the cache remembers. */
const rememberedNotes = 16_384

/** What a member says to itself, to hear whether it is heard. */
const signOfLife = '[]'
/** As the scripts note it, which sign nothing. */
const everything = 'a:'

/** The ledger that several instances share. */
export const createRedisLedger = (options: RedisLedgerOptions): Ledger => {
  const { member, prefix } = options
  const calls = connect(options, options.changed)
  const base = `{${prefix}}:`
  const keys = ['ledger', 'log', 'members', 'pending'].map((name) => base + name)
  const scripts = Object.fromEntries(
    Object.entries(ledgerScripts).map(([name, text]) => [name, scriptOn(calls, text)]),
  ) as Record<keyof typeof ledgerScripts, RunScript>
  const run = async <Reply>(
    name: keyof typeof ledgerScripts,
    read: (reply: unknown) => Reply,
    ...argv: (string | number)[]
  ): Promise<Reply> => {
    try {
      return read(await scripts[name](keys, [randomBytes(9).toString('base64url'), base, member, ...argv]))
    } catch (error) {
      options.troubled(error)
      throw error
    }
  }
  const { acknowledgements, notes: ofNotes } = options.signatures
  const signed = (notes: readonly string[]): string =>
    JSON.stringify(notes.map((text) => ofNotes.signText(prefix, text)))
  /** What cannot be believed may stand for any note. The scripts' own is the one that means everything. */
  const believed = (text: string): string => {
    const verified = text === everything ? text : ofNotes.verifiedText(prefix, text)
    if (verified === undefined) options.troubled(new Error('UNSIGNED note'))
    return verified ?? everything
  }
  /** Where notes are signed, a message is a hint: its number is not, and what it says may have been said before. */
  const pushOf = (channel: string, message: string): Push | undefined => {
    if (message === signOfLife) return undefined
    if (channel === notedChannel) {
      const push = readPush(channel, message)
      if (push?.kind !== 'noted') return undefined
      const { epoch, notes, seq, writer } = push
      return ofNotes.isSigning
        ? { kind: 'hint', epoch, seq, writer }
        : { ...push, notes: notes.map(believed) }
    }
    const verified = acknowledgements.verifiedText(prefix, message)
    if (verified === undefined) options.troubled(new Error('UNSIGNED acknowledgement'))
    return verified === undefined ? undefined : readPush(channel, verified)
  }
  /** The server's time in the last reply: shows that this member hears what it is told. */
  let proof = { epoch: '', time: '0' }
  const notedChannel = `${base}noted`
  const channels = [notedChannel, `${base}applied:${member}`, `${base}applied:all`]
  let listener: Listener | undefined

  return {
    sync: async ({ epoch, applied }): Promise<Synced> => {
      const { now, ...synced } = await run(
        'sync',
        readSynced,
        epoch,
        applied,
        proof.time,
        options.leaseMs,
        options.forgetAfterMs,
        rememberedNotes,
        proof.epoch,
      )
      proof = { epoch: synced.epoch, time: now }
      return { ...synced, notes: synced.notes.map(({ seq, text }) => ({ seq, text: believed(text) })) }
    },
    begin: async (write, notes) => {
      await run('begin', readDone, write, signed(notes))
    },
    append: (notes, settled): Promise<Appended> =>
      run('append', readAppended, signed(notes), JSON.stringify(settled), rememberedNotes),
    acknowledge: ({ epoch, applied }, entries, writer) => {
      // No script: the ledger learns it with the next sync, and most of what it does would be this.
      const message = JSON.stringify([epoch, String(applied), member, String(entries)])
      const text = acknowledgements.signText(prefix, message)
      calls.publish(`${base}applied:${writer ?? 'all'}`, text).catch(() => undefined)
    },
    forget: async (ended) => {
      await run('forget', readDone, ended, options.leaseMs, rememberedNotes)
    },
    listen: (take) => {
      listener = listen(
        calls,
        {
          channels,
          everyMs: options.leaseMs,
          // To itself, and no push.
          speak: () => calls.publish(`${base}applied:${member}`, signOfLife),
          troubled: options.troubled,
          connector: connectorFor('listens', options),
        },
        (...pushed) => {
          const push = pushOf(...pushed)
          if (push !== undefined) take(push)
        },
      )
    },
    leave: async (cleanly) => {
      try {
        if (cleanly) await run('leave', readDone, rememberedNotes)
      } catch {
        // Then the others find out by themselves.
      }
      calls.disconnect()
      listener?.close()
    },
  }
}
