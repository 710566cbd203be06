/** Weights of content codings as a client states them (RFC 9110 §12.5.3). */
export type AcceptedCodings = {
  /** 0 = refused; undefined = not named, neither itself nor by `*`. */
  weightOf(coding: string): number | undefined
}

/** More members than any client sends; the rest is not read. */
const mostMembers = 32

/** RFC 9110 §12.4.2: at most three digits after the point. An invalid weight counts as absent. */
const weightPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** RFC 9110 §8.4.1.1 and §8.4.1.3: old names of the same coding. */
const sameAs: Readonly<Record<string, string>> = { 'x-gzip': 'gzip', 'x-compress': 'compress' }

const weightIn = (parameters: readonly string[]): number => {
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.split('=', 2)
    if (name.trim().toLowerCase() !== 'q') continue
    const text = value.trim()
    return weightPattern.test(text) ? Number(text) : 1
  }
  return 1
}

/** Reads any text without failing; a coding that is named twice keeps its first weight. */
export const parseAcceptEncoding = (value: string): AcceptedCodings => {
  const weights = new Map<string, number>()
  for (const member of value.split(',', mostMembers)) {
    const [name = '', ...parameters] = member.split(';')
    const written = name.trim().toLowerCase()
    const coding = Object.hasOwn(sameAs, written) ? (sameAs[written] as string) : written
    if (coding !== '' && !weights.has(coding)) weights.set(coding, weightIn(parameters))
  }
  const others = weights.get('*')
  return {
    weightOf: (coding) => weights.get(coding) ?? others,
  }
}
