import { isCredentialParameter } from './headers/credential-headers.ts'
import { unescaped } from './targets.ts'

/** Stands where a secret was. */
export const hidden = '[redacted]'

/** A client may escape more often; what an upstream then reads is no name that a service declares. */
const maxDecodings = 3

const decoded = (text: string): string => {
  let plain = text.includes('+') ? text.replaceAll('+', ' ') : text
  for (let times = 0; times < maxDecodings; times += 1) {
    const next = unescaped(plain)
    if (next === plain) break
    plain = next
  }
  return plain
}

const octets = /^[\0-\xff]*[\x80-\xff][\0-\xff]*$/

/** A name is read as text, and as UTF-8 where it consists of octets. */
const inUtf8 = (name: string): string =>
  octets.test(name) ? Buffer.from(name, 'latin1').toString('utf8') : name

const brokenEscape = /%(?![\da-f]{2})/i

const escaped = (octet: string): string => `%(?:25){0,2}${octet}`

const separator = `(?:[;&]|${escaped('(?:3b|3f|26)')})`
const equals = `(?:=|${escaped('3d')})`
const parameterOfPath = new RegExp(
  `(${separator})((?:(?!${separator}|${equals})[^/])+)(${equals})(?:(?!${separator})[^/])*`,
  'gi',
)

const userinfoOfPath = new RegExp(`((?:/|${escaped('2f')}){2})[^/?#]*(@|${escaped('40')})`, 'gi')

const userinfoInside = /\/\/[^/?#]*@/

/** What may follow the name of a parameter: the query of a URL in a value, a form, a matrix parameter. */
const parameterInside = /(?:^|[?&;#])([^=?&;#]{1,200})=(?=[^?&;#])/g

/** A member of JSON, or an argument of GraphQL, with a value that is no word. */
const memberInside = /(?<![\w$.-])([\w.-]{1,200})\s*:\s*["'\d{[-]/g

/** Other names, and other values (`true`), are those of JSON where the name stands in quotes. */
const quotedMemberInside = /["']([^"']{1,200})["']\s*:\s*[^\s,}\]]/g

/** An argument may be a word; before the first of them it is an alias. */
const argumentInside = /(?<![\w$.-])([\w.-]{1,200})\s*:\s*[a-z_]/gi

const defaultInside = /\$(\w{1,200})\s*:[^=:,()$]{1,100}=/g

/** Beside a value, as in `{"key":"a","value":1}`, it names what is looked for. */
const keyOfPair = /^key$/i

const escapedInJson = /\\u([\da-f]{4})/gi

const mayHaveNames = /[=:@]/

/** Servers ignore case, and read dots as underscores. */
const comparedName = (name: string): string => {
  const compared = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
  return compared === '' ? name : compared
}

/** The whole name, and each part of `a[]`, `a[b]` and `a.b`: servers take some of them for a parameter of that name. */
const comparedNames = (name: string): readonly string[] =>
  /^\w*$/.test(name)
    ? [comparedName(name)]
    : [name, ...name.split(/[[\].\0]+/)].filter((part) => part !== '').map(comparedName)

/**
 * Hides secrets in what leaves the process for people: logs, and the pages and lists of the admin side. A parameter is secret by its
 * name, or because a service declares it; one that a service declares is hidden in the targets of all, since services share upstreams.
 * It decides nothing else: what is stored and fetched follows from what the service of the request declares.
 */
export class Redaction {
  readonly #declared: Set<string>

  constructor(declared: readonly string[] = []) {
    this.#declared = new Set()
    this.declare(declared)
  }

  /** Names stay declared after a reload, even of a service that it removes: what was recorded before is shown after it. */
  declare(names: readonly string[]): void {
    for (const name of names) this.#declared.add(comparedName(name.split('[', 1)[0] || name))
  }

  /** A target, a URL, or a tag that has one at its end. */
  target(text: string): string {
    const at = text.indexOf('?')
    const path = this.#path(at === -1 ? text : text.slice(0, at))
    return at === -1 ? path : `${path}?${this.#query(text.slice(at + 1))}`
  }

  /** The same for a place that shows no more than `max` characters: the rest of a long text costs nothing. */
  beginning(text: string, max: number): string {
    // Redaction may shorten it.
    const kept = 2 * max
    if (text.length <= kept) return this.target(text)
    // Userinfo is known by its end, which may be cut off.
    const shown = this.target(`${text.slice(0, kept)}@`)
    return `${shown.endsWith('@') ? shown.slice(0, -1) : shown}...`
  }

  #path(path: string): string {
    const withoutUser = /@|%(?:25)*40/.test(path) ? path.replace(userinfoOfPath, `$1${hidden}$2`) : path
    if (!/[=%]/.test(withoutUser)) return withoutUser
    return withoutUser.replace(
      parameterOfPath,
      (parameter: string, start: string, name: string, is: string) =>
        this.#isSecretParameter(name) ? start + name + is + hidden : parameter,
    )
  }

  #query(query: string): string {
    return query
      .split('&')
      .map((pair) => {
        const at = pair.indexOf('=')
        // A whole document may stand where a name is expected.
        if (at === -1) return this.#hasSecret(pair) ? hidden : pair
        const name = pair.slice(0, at)
        if (this.#hasSecret(name)) return hidden
        return this.#isSecretParameter(name) || this.#hasSecret(pair.slice(at + 1))
          ? `${name}=${hidden}`
          : pair
      })
      .join('&')
  }

  /** A name that cannot be decoded may mean a secret to the upstream. */
  #isSecretParameter(name: string): boolean {
    if (brokenEscape.test(name)) return true
    const plain = decoded(name)
    return /[?&;#]/.test(plain)
      ? plain.split(/[?&;#]/).some((part) => this.#isSecretPlain(part))
      : this.#isSecretPlain(plain)
  }

  #isSecretPlain(name: string): boolean {
    return this.#isSecretName(name) || /^code$|token$/i.test(name) || inUtf8(name).includes('\ufffd')
  }

  #isSecretName(name: string): boolean {
    return this.#isDeclared(name) || isCredentialParameter(name)
  }

  #isDeclared(name: string): boolean {
    if (this.#declared.size === 0) return false
    const isIn = (plain: string): boolean => comparedNames(plain).some((part) => this.#declared.has(part))
    if (isIn(name)) return true
    const read = inUtf8(name)
    return read !== name && isIn(read)
  }

  #isSecretMember(name: string): boolean {
    return this.#isDeclared(name) || (!keyOfPair.test(name) && isCredentialParameter(name))
  }

  /** A URL, a form, JSON or a GraphQL document may have a secret inside. */
  #hasSecret(value: string): boolean {
    const plain = decoded(value)
    if (!mayHaveNames.test(plain)) return false
    if (userinfoInside.test(plain)) return true
    const text = plain.includes('\\')
      ? plain
          .replace(escapedInJson, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
          .replaceAll('\\', '')
      : plain
    return this.#hasSecretParameter(text) || (text.includes(':') && this.#hasSecretMember(text))
  }

  #hasSecretParameter(text: string): boolean {
    for (const [, name = ''] of text.matchAll(parameterInside)) if (this.#isSecretPlain(name)) return true
    return false
  }

  #hasSecretMember(text: string): boolean {
    const from = text.indexOf('(')
    const inArguments = from === -1 ? '' : text.slice(from)
    for (const [inside, pattern] of [
      [text, memberInside],
      [text, quotedMemberInside],
      [inArguments, argumentInside],
      [inArguments, defaultInside],
    ] as const)
      for (const [, name = ''] of inside.matchAll(pattern)) if (this.#isSecretMember(name)) return true
    return false
  }
}
