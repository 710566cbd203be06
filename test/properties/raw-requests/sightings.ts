import type { WireMessage } from '../../support/read-messages.ts'

/** Requests as one reader saw them: method, number of the variant and of the request in it, content. */
export type Sighting = string

const named = /\/(i\d+[ab])-(\w*)/

/** What was seen of each variant between its beginning and its end. */
export type Sightings = {
  /** From now on what is seen of it is kept. */
  begin(variant: string): void
  note(method: string, target: string, content: string): void
  /** So far. */
  of(variant: string): readonly Sighting[]
  take(variant: string): readonly Sighting[]
  /** Variants of which something was seen after they were taken, and how many requests belong to none; forgotten by asking. */
  takeLate(): { readonly variants: readonly string[]; readonly strange: readonly Sighting[] }
}

export const createSightings = (): Sightings => {
  const seen = new Map<string, Sighting[]>()
  let late = new Set<string>()
  let strange: Sighting[] = []
  return {
    begin: (variant) => {
      seen.set(variant, [])
    },
    note: (method, target, content) => {
      const [, variant, part = ''] = named.exec(target) ?? []
      if (variant === undefined) {
        strange.push(`${method} ${target.slice(0, 80)}`)
        return
      }
      const known = seen.get(variant)
      if (known === undefined) late.add(variant)
      else known.push(`${method} ${part} ${JSON.stringify(content)}`)
    },
    of: (variant) => seen.get(variant) ?? [],
    take: (variant) => {
      const taken = seen.get(variant) ?? []
      seen.delete(variant)
      return taken
    },
    takeLate: () => {
      const taken = { variants: [...late], strange }
      late = new Set()
      strange = []
      return taken
    },
  }
}

/** Are all of these among those, each as often? The first that is not, or undefined. */
export const firstMissing = (
  these: readonly Sighting[],
  those: readonly Sighting[],
): Sighting | undefined => {
  const left = [...those]
  return these.find((sighting) => {
    const at = left.indexOf(sighting)
    if (at === -1) return true
    left.splice(at, 1)
    return false
  })
}

/** Notes what a recorder gets, and answers shortly. */
export const recordedResponse =
  ({ note: invalidation }: Sightings) =>
  ({ startLine, content }: WireMessage): string => {
    const [method = '', target = ''] = startLine.split(' ')
    invalidation(method, target, content.toString('latin1'))
    return 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  }
