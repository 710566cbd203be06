import type { Connection } from './connections.ts'
import type { Signatures } from './signatures.ts'

/** A position in the log of changes of one service: every row up to it is applied in all instances. */
type ChangePosition = {
  readonly incarnation: string
  readonly position: number
  readonly fingerprint: string
}

export type ChangePositions = {
  read(): Promise<ChangePosition | undefined>
  write(position: ChangePosition): Promise<void>
}

/** A gateway that was away for longer drops everything. */
const keptMs = 7 * 86_400_000

const isPosition = (value: unknown): value is ChangePosition => {
  if (typeof value !== 'object' || value === null) return false
  const { incarnation, position, fingerprint } = value as Record<string, unknown>
  return (
    typeof incarnation === 'string' &&
    incarnation !== '' &&
    typeof fingerprint === 'string' &&
    Number.isSafeInteger(position) &&
    Number(position) >= 0
  )
}

/** Keeps the position of one service for all instances. A value that cannot be read counts as absent. */
export const createChangePositions = (
  connection: Connection,
  options: { readonly prefix: string; readonly service: string; readonly signatures: Signatures },
): ChangePositions => {
  const key = `${options.prefix}:changes:{${options.service}}`
  return {
    read: async () => {
      const signed = await connection.get(key)
      const text = signed === null ? undefined : options.signatures.verifiedText(key, signed)
      if (text === undefined) return undefined
      try {
        const value: unknown = JSON.parse(text)
        return isPosition(value) ? value : undefined
      } catch {
        return undefined
      }
    },
    write: async ({ incarnation, position, fingerprint }) => {
      const text = JSON.stringify({ incarnation, position, fingerprint })
      await connection.set(key, options.signatures.signText(key, text), 'PX', keptMs)
    },
  }
}
