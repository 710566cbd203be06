import { type RequestHeaders, requestHeader } from '../../http/headers/header-lines.ts'
import { isPost } from '../../http/methods.ts'
import { type ContentInspector, readUncoded } from '../../service/contract.ts'
import { boundaryOf, MultipartInspector } from './inspect-multipart.ts'
import { decodedOctets, foldPhpName, routeParameter } from './php-query.ts'
import { misplacedParameter } from './site-errors.ts'

/** What PHP reads as a form, whatever stands behind the type. */
const formType = /^(multipart\/form-data|application\/x-www-form-urlencoded)/i

const ampersand = 0x26
const equals = 0x3d

/** Decides about any name: ten characters with an escape each, and one behind them. */
const maxNameOctets = 64

const leadingSpaces = /^(?:[+ ]|%20)+/

const endOfName = (octets: Buffer, start: number): number => {
  let end = start
  while (end < octets.length && octets[end] !== ampersand && octets[end] !== equals) end += 1
  return end
}

/** Names of the parameters in an urlencoded form, as its octets arrive. */
class UrlencodedInspector implements ContentInspector {
  readonly #refused: ReadonlySet<string>
  /** What is known of the name that is being read; undefined in a value. */
  #name: string | undefined = ''

  constructor(refused: ReadonlySet<string>) {
    this.#refused = refused
  }

  read(piece: Buffer): string | undefined {
    let at = 0
    while (at < piece.length) {
      if (this.#name === undefined) {
        const next = piece.indexOf(ampersand, at)
        if (next < 0) return undefined
        at = next + 1
        this.#name = ''
        continue
      }
      const end = endOfName(piece, at)
      const name = this.#readName(piece.toString('latin1', at, end), piece[end])
      if (name !== undefined) return misplacedParameter(name)
      at = end + 1
    }
    return undefined
  }

  ifEnded(): string | undefined {
    const name = this.#refusedName(true)
    return name === undefined ? undefined : misplacedParameter(name)
  }

  /** `end`: the octet behind it, where the piece has that. Gives the name if it is refused. */
  #readName(text: string, end: number | undefined): string | undefined {
    const name = `${this.#name}${text}`.replace(leadingSpaces, '')
    const isLong = name.length > maxNameOctets
    this.#name = name.slice(0, maxNameOctets)
    const refused = isLong || end !== undefined ? this.#refusedName(!isLong) : undefined
    if (end === ampersand) this.#name = ''
    else if (end === equals || isLong) this.#name = undefined
    return refused
  }

  /** A bracket that is open in the part of a longer name may be closed behind it. */
  #refusedName(isWhole: boolean): string | undefined {
    if (this.#name === undefined || this.#name === '') return undefined
    const name = foldPhpName(decodedOctets(this.#name) + (isWhole ? '' : ']'))
    return this.#refused.has(name) ? name : undefined
  }
}

/**
 * Finds the parameter that WordPress takes for the route, and `names`, in a form that is forwarded unread. PHP reads a form of POST
 * alone. Throws a 415 for a coded form, which a server in front of PHP may decode.
 */
export const inspectForm = (
  method: string,
  fields: RequestHeaders,
  names: readonly string[],
): ContentInspector | undefined => {
  const type = requestHeader(fields, 'content-type') ?? ''
  const [, form = ''] = formType.exec(type) ?? []
  if (!isPost(method) || form === '') return undefined
  readUncoded(fields)
  const refused = new Set([routeParameter, ...names])
  if (form.toLowerCase() !== 'multipart/form-data') return new UrlencodedInspector(refused)
  const boundary = boundaryOf(type)
  return boundary === undefined ? undefined : new MultipartInspector(boundary, refused)
}
