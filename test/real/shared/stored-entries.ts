import { Redis } from 'ioredis'

/** What stands before the content of an entry, as far as tests change it. */
export type EntryHead = {
  facts: { status: number; headers: string[] }
  [name: string]: unknown
}

/** An entry of the second tier, taken apart and to be put together again. */
export type StoredEntry = { readonly head: EntryHead; content: Buffer }

const markBytes = 8
const signatureBytes = 32

/** Takes an entry apart. A signature behind the content is lost. */
export const openEntry = (bytes: Buffer, isSigned = false): StoredEntry => {
  const end = markBytes + bytes.readUInt32BE(4)
  const head = JSON.parse(bytes.toString('utf8', markBytes, end)) as EntryHead
  return { head, content: bytes.subarray(end, isSigned ? -signatureBytes : undefined) }
}

/** Builds an entry without the key, as an attacker would. */
export const packEntry = (like: Buffer, { head, content }: StoredEntry): Buffer => {
  const text = Buffer.from(JSON.stringify(head))
  const frame = Buffer.from(like.subarray(0, markBytes))
  frame.writeUInt32BE(text.length, 4)
  return Buffer.concat([frame, text, content])
}

/** Changes that a program with access to the Redis of a gateway can make. */
export type RedisWriter = {
  readonly redis: Redis
  /** Keys of entries, in order. */
  keys(pattern?: string): Promise<readonly string[]>
  read(key: string): Promise<Buffer>
  /** Puts other bytes in the place of an entry; its time to live stays. */
  write(key: string, bytes: Buffer): Promise<void>
  close(): void
}

export const redisWriter = (
  port: number,
  options: { readonly username?: string; readonly password?: string } = {},
): RedisWriter => {
  const redis = new Redis(port, '127.0.0.1', options)
  return {
    redis,
    keys: async (pattern = 'trellis:e:*') => (await redis.keys(pattern)).sort(),
    read: async (key) => {
      const bytes = await redis.getBuffer(key)
      if (bytes === null) throw new Error(`nothing is stored under ${key}`)
      return bytes
    },
    write: async (key, bytes) => {
      await redis.set(key, bytes, 'KEEPTTL')
    },
    close: () => redis.disconnect(),
  }
}
