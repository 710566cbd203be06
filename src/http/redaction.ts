import { isCredentialParameter } from './headers/credential-headers.ts'

const hidden = '[redacted]'

/** A client may escape more often; what an upstream then reads is no name that a service declares. */
const maxDecodings = 3

/** Octets that are no UTF-8 stay legible, so that names beside them are found. */
const decodedOnce = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text.replace(/%([\da-f]{2})/gi, (_, octet: string) =>
      String.fromCharCode(Number.parseInt(octet, 16)),
    )
  }
}

const decoded = (text: string): string => {
  let plain = text.replaceAll('+', ' ')
  for (let times = 0; times < maxDecodings && plain.includes('%'); times += 1) plain = decodedOnce(plain)
  return plain
}

const canBeDecoded = (text: string): boolean => {
  if (!text.includes('%')) return true
  try {
    return decodeURIComponent(text) !== undefined
  } catch {
    return false
  }
}

/** What may follow the name of a parameter: the query of a URL in a value, a form, a matrix parameter. */
const parameterInside = /(?:^|[?&;#])([^=?&;#]{1,200})=(?=[^?&;#])/g

/** A member of JSON, or an argument of GraphQL, with a value. */
const memberInside = /(?<![\w$.-])([\w.-]{1,200})(?:["'])?\s*:\s*["'\d{[-]/g

/** Beside a value, as in `{"key":"a","value":1}`, it names what is looked for. */
const keyInside = /^key$/i

const escapedInJson = /\\u([\da-f]{4})/gi

const mayHaveNames = /[=:]/

/** The form in which names are compared: servers ignore case, read dots as underscores, and take `a[]` and `a[0]` for `a`. */
const comparedName = (name: string): string => {
  const [base = ''] = name.split(/[[\0]/, 1)
  return base.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
}

/**
 * Hides secrets in what leaves the process for people: logs, and the pages and lists of the admin side. A parameter is secret by its
 * name, or because a service declares it; one that a service declares is hidden in the targets of all, since services share upstreams.
 */
export class Redaction {
  readonly #declared: Set<string>

  constructor(declared: readonly string[] = []) {
    this.#declared = new Set(declared.map(comparedName))
  }

  /** Names stay declared after a reload: what was recorded before it is shown after it. */
  declare(names: readonly string[]): void {
    for (const name of names) this.#declared.add(comparedName(name))
  }

  /** A target, a URL, or a tag that has one at its end. */
  target(text: string): string {
    const plain = text.includes('@')
      ? text.replace(/^([a-z][a-z\d+.-]*:\/\/)[^/?#]*@/i, `$1${hidden}@`)
      : text
    const at = plain.indexOf('?')
    const path = at === -1 ? plain : plain.slice(0, at)
    const shownPath = path.includes(';') ? this.#path(path) : path
    return at === -1 ? shownPath : `${shownPath}?${this.#query(plain.slice(at + 1))}`
  }

  /** Has the target nothing to hide? */
  isShown(target: string): boolean {
    return this.target(target) === target
  }

  #path(path: string): string {
    return path.replace(/;([^;/=]+)=[^;/]*/g, (parameter: string, name: string) =>
      this.#isSecret(name) ? `;${name}=${hidden}` : parameter,
    )
  }

  #query(query: string): string {
    return query
      .split('&')
      .map((pair) => {
        const at = pair.indexOf('=')
        if (at === -1) return pair
        const name = pair.slice(0, at)
        return this.#isSecret(name) || this.#hasSecret(pair.slice(at + 1)) ? `${name}=${hidden}` : pair
      })
      .join('&')
  }

  /** A name that cannot be decoded may mean a secret to the upstream. */
  #isSecret(name: string): boolean {
    if (!canBeDecoded(name)) return true
    const plain = decoded(name)
    return this.#isSecretName(plain) || /^code$|token$/i.test(plain)
  }

  #isSecretName(name: string): boolean {
    return (this.#declared.size > 0 && this.#declared.has(comparedName(name))) || isCredentialParameter(name)
  }

  /** A URL, a form, JSON or a GraphQL document may have a secret inside. */
  #hasSecret(value: string): boolean {
    const plain = decoded(value)
    if (!mayHaveNames.test(plain)) return false
    const text = plain.replace(escapedInJson, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
    return [...text.matchAll(parameterInside), ...text.matchAll(memberInside)].some(
      ([, name = '']) => !keyInside.test(name) && this.#isSecretName(name),
    )
  }
}
