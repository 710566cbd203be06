import { Readable } from 'node:stream'
import type { ByteBudget } from '../http/bounds.ts'
import { requestField } from '../http/message.ts'
import { splitPhpName } from '../http/php-names.ts'
import type { Ready } from './exchange.ts'
import { readContent } from './reads.ts'

/** Longer forms are not read, and count as writes. */
const longestForm = 16 * 1024

/** WordPress takes these for the route and the method of its interface, also from a form behind any URL. */
const rerouting: readonly string[] = ['rest_route', '_method']

/** The name of a parameter as PHP reads it; undefined when it cannot be decoded. */
const phpName = (parameter: string): string | undefined => {
  try {
    const name = decodeURIComponent((parameter.split('=', 1)[0] ?? '').replaceAll('+', ' '))
    return splitPhpName(name)?.name.toLowerCase() ?? ''
  } catch {
    return undefined
  }
}

/** Does a form give a value to one of the names, in any spelling that PHP reads so? */
const mayHaveName = (form: string, names: readonly string[]): boolean => {
  const refused = new Set(names.map((name) => phpName(name)))
  return form.split(/[&;]/).some((parameter) => {
    const name = phpName(parameter)
    return name === undefined || refused.has(name)
  })
}

/** The exchange with its form read, where it was; and whether the administrator says that it changes nothing. */
type Judged = { readonly exchange: Ready; readonly isHarmless: boolean }

/**
 * For PHP a form counts more than the URL, and one that is not read whole may name anything: it is a write. PHP reads no parameters
 * from JSON.
 */
export const judgeWrite = async (exchange: Ready, budget: ByteBudget): Promise<Judged> => {
  const { service, method, matching, query, content, request, client } = exchange
  const names = service.harmlessWrite?.(method, matching.path, query)
  if (names === undefined) return { exchange, isHarmless: false }
  const type = requestField(request.fields, 'content-type') ?? ''
  if (content === undefined || /^application\/json\s*(?:;|$)/i.test(type))
    return { exchange, isHarmless: true }
  const length = Number(requestField(request.fields, 'content-length') ?? Number.POSITIVE_INFINITY)
  const isForm = /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)
  if (!isForm || length > longestForm) return { exchange, isHarmless: false }
  const reservation = budget('request-body', client.address)
  try {
    const form =
      content instanceof Readable
        ? await readContent(content, longestForm, request.signal, reservation)
        : content
    const isHarmless = !mayHaveName(form.toString('latin1'), [...names, ...rerouting])
    return { exchange: { ...exchange, content: form }, isHarmless }
  } finally {
    reservation.release()
  }
}
