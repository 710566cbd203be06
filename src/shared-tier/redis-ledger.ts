import { randomBytes } from 'node:crypto'
import type { Appended, LeaseRefusal, Ledger, Noted, Push, Standing, Synced } from '../coherence/ledger.ts'
import { type ConnectionOptions, connect, type RunScript, scriptOn } from './connections.ts'
import { ledgerScripts } from './ledger-scripts.ts'
import { type Listener, listen } from './listener.ts'

export type RedisLedgerOptions = ConnectionOptions & {
  /** In front of every key and channel: gateways with other content use another one. */
  readonly prefix: string
  readonly member: string
  readonly leaseMs: number
  readonly forgetAfterMs: number
  readonly changed: (state: 'up' | 'down') => void
}

/** As many as a member of the cache remembers. */
const rememberedNotes = 16_384

type SyncReply = readonly [
  epoch: string,
  seq: string,
  floor: string,
  notes: readonly string[],
  members: readonly string[],
  lease: 'granted' | LeaseRefusal,
  now: string,
]

const standings = (flat: readonly string[]): readonly Standing[] => {
  const list: Standing[] = []
  for (let at = 0; at + 2 < flat.length; at += 3) {
    list.push({ member: flat[at] as string, applied: Number(flat[at + 1]), beat: Number(flat[at + 2]) })
  }
  return list
}

const notedOf = (flat: readonly string[]): readonly Noted[] => {
  const list: Noted[] = []
  for (let at = 0; at + 1 < flat.length; at += 2) {
    list.push({ text: flat[at] as string, seq: Number(flat[at + 1]) })
  }
  return list
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** What a channel carries; undefined when it is not what the scripts write: whoever may publish there may say anything. */
const readPush = (channel: string, message: string): Push | undefined => {
  const content = parsed(message)
  if (!Array.isArray(content) || content.length !== 4 || !isTexts(content.slice(0, 3))) return undefined
  const [epoch, seq, name, last] = content as unknown as readonly [string, string, string, unknown]
  if (!Number.isSafeInteger(Number(seq))) return undefined
  if (!channel.endsWith('noted')) {
    return { kind: 'applied', epoch, seq: Number(seq), member: name, entries: Number(last) }
  }
  return isTexts(last) ? { kind: 'noted', epoch, seq: Number(seq), writer: name, notes: last } : undefined
}

/** The ledger that several instances share. */
export const createRedisLedger = (options: RedisLedgerOptions): Ledger => {
  const { member, prefix } = options
  const calls = connect(options, options.changed)
  const base = `{${prefix}}:`
  const keys = ['ledger', 'log', 'members', 'pending'].map((name) => base + name)
  const scripts = Object.fromEntries(
    Object.entries(ledgerScripts).map(([name, text]) => [name, scriptOn(calls, text)]),
  ) as Record<keyof typeof ledgerScripts, RunScript>
  const run = async (name: keyof typeof ledgerScripts, ...argv: (string | number)[]): Promise<unknown> => {
    try {
      return await scripts[name](keys, [randomBytes(9).toString('base64url'), base, member, ...argv])
    } catch (error) {
      options.troubled(error)
      throw error
    }
  }
  /** The server's time in the last reply: shows that this member hears what it is told. */
  let proof = '0'
  const channels = [`${base}noted`, `${base}applied:${member}`, `${base}applied:all`]
  let listener: Listener | undefined

  return {
    sync: async ({ epoch, applied }): Promise<Synced> => {
      const reply = (await run(
        'sync',
        epoch,
        applied,
        proof,
        options.leaseMs,
        options.forgetAfterMs,
        rememberedNotes,
      )) as SyncReply
      proof = reply[6]
      return {
        epoch: reply[0],
        seq: Number(reply[1]),
        floor: Number(reply[2]),
        notes: notedOf(reply[3]),
        members: standings(reply[4]),
        lease: reply[5],
      }
    },
    begin: async (write, notes) => {
      await run('begin', write, JSON.stringify(notes))
    },
    append: async (notes, settled): Promise<Appended> => {
      const reply = await run('append', JSON.stringify(notes), JSON.stringify(settled), rememberedNotes)
      const [epoch, seq, members] = reply as readonly [string, string, readonly string[]]
      return { epoch, seq: Number(seq), members: standings(members) }
    },
    acknowledge: ({ epoch, applied }, entries, writer) => {
      // No script: the ledger learns it with the next sync, and most of what it does would be this.
      const message = JSON.stringify([epoch, String(applied), member, String(entries)])
      calls.publish(`${base}applied:${writer ?? 'all'}`, message).catch(() => undefined)
    },
    forget: async (ended) => {
      await run('forget', ended, options.leaseMs, rememberedNotes)
    },
    listen: (take) => {
      listener = listen(
        calls,
        {
          channels,
          everyMs: options.leaseMs,
          // To itself, and no push.
          speak: () => calls.publish(`${base}applied:${member}`, '[]'),
          troubled: options.troubled,
        },
        (...pushed) => {
          const push = readPush(...pushed)
          if (push !== undefined) take(push)
        },
      )
    },
    leave: async (cleanly) => {
      try {
        if (cleanly) await run('leave', rememberedNotes)
      } catch {
        // Then the others find out by themselves.
      }
      calls.disconnect()
      listener?.close()
    },
  }
}
