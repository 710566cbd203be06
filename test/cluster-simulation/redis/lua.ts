/**
 * Compiles the part of Lua 5.1 that the scripts of src/cluster are written in into a function of JavaScript: what is simulated is the
 * text that Redis gets. test/real/redis-model.real.test.ts compares it with a real server.
 */

/** A table: a list, and members with other keys. */
export class LuaTable {
  readonly list: LuaValue[]
  members: Map<LuaValue, LuaValue> | undefined
  constructor(list: LuaValue[]) {
    this.list = list
  }
}
export type LuaValue = string | number | boolean | undefined | LuaTable

type Token = { readonly kind: 'name' | 'number' | 'string' | 'sign' | 'end'; readonly text: string }

const tokenPattern =
  /\s+|--[^\n]*|([A-Za-z_]\w*)|(\d+(?:\.\d+)?)|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\.\.|==|~=|<=|>=|[-+*/%#<>=(){}[\].,;:])/y

const tokensOf = (text: string): readonly Token[] => {
  const tokens: Token[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < text.length) {
    const at = tokenPattern.lastIndex
    const match = tokenPattern.exec(text)
    if (match === null) throw new Error(`not Lua that is understood here: ${text.slice(at, at + 40)}`)
    const [, name, number, single, double, sign] = match
    const string = single ?? double
    if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else if (string !== undefined) tokens.push({ kind: 'string', text: string.replace(/\\(.)/g, '$1') })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign })
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}

/** An expression in JavaScript; `isMany`: its value is the list of all values that a call returns. */
type Code = { readonly text: string; readonly isMany: boolean }

const one = ({ text, isMany }: Code): string => (isMany ? `(${text})[0]` : text)
const single = (text: string): Code => ({ text, isMany: false })

/** The last one may give several values. */
const listOf = (codes: readonly Code[]): string =>
  `[${codes.map((code, i) => (code.isMany && i === codes.length - 1 ? `...${code.text}` : one(code))).join(', ')}]`

const binary: Readonly<Record<string, readonly [level: number, code: (a: string, b: string) => string]>> = {
  or: [1, (a, b) => `((v) => lua.isTrue(v) ? v : ${b})(${a})`],
  and: [2, (a, b) => `((v) => lua.isTrue(v) ? ${b} : v)(${a})`],
  '==': [3, (a, b) => `(${a} === ${b})`],
  '~=': [3, (a, b) => `(${a} !== ${b})`],
  '<': [3, (a, b) => `lua.isLess(${a}, ${b})`],
  '>': [3, (a, b) => `lua.isLess(${b}, ${a})`],
  '<=': [3, (a, b) => `!lua.isLess(${b}, ${a})`],
  '>=': [3, (a, b) => `!lua.isLess(${a}, ${b})`],
  '..': [4, (a, b) => `lua.joined(${a}, ${b})`],
  '+': [5, (a, b) => `(lua.number(${a}) + lua.number(${b}))`],
  '-': [5, (a, b) => `(lua.number(${a}) - lua.number(${b}))`],
  '*': [6, (a, b) => `(lua.number(${a}) * lua.number(${b}))`],
  '/': [6, (a, b) => `(lua.number(${a}) / lua.number(${b}))`],
}
const unaryLevel = 7

/** Functions of Lua and Redis, each with one value, except string.match. */
const library: ReadonlySet<string> = new Set([
  'tonumber',
  'math.floor',
  'math.max',
  'string.format',
  'string.match',
  'string.sub',
  'redis.call',
  'cjson.encode',
  'cjson.decode',
])

const blockEnds: ReadonlySet<string> = new Set(['end', 'else', 'elseif', ''])

const compile = (source: string): string => {
  const tokens = tokensOf(source)
  let at = 0
  const look = (): Token => tokens[at] as Token
  const take = (): Token => tokens[at++] as Token
  const is = (text: string): boolean => look().text === text && look().kind !== 'string'
  const takeIf = (text: string): boolean => {
    if (!is(text)) return false
    at += 1
    return true
  }
  const expect = (text: string): void => {
    if (!takeIf(text)) throw new Error(`expected ${text} before ${look().text}`)
  }
  const name = (): string => {
    const { kind, text } = take()
    if (kind !== 'name') throw new Error(`expected a name, not ${text}`)
    return text
  }
  /** In JavaScript each local variable has a name of its own: Lua lets a block declare a name again. */
  const scopes: Map<string, string>[] = [
    new Map([
      ['KEYS', '_KEYS'],
      ['ARGV', '_ARGV'],
    ]),
  ]
  let declared = 0
  const declare = (text: string): string => {
    declared += 1
    const unique = `_${text}_${declared}`
    scopes.at(-1)?.set(text, unique)
    return unique
  }
  const own = (text: string): string => {
    const scope = scopes.findLast((names) => names.has(text))
    if (scope === undefined) throw new Error(`a global variable: ${text}`)
    return scope.get(text) ?? ''
  }
  /** What is declared inside is not known behind it. */
  const inScope = <Result>(parse: () => Result): Result => {
    scopes.push(new Map())
    const result = parse()
    scopes.pop()
    return result
  }

  const list = (): readonly Code[] => {
    const codes = [expression(0)]
    while (takeIf(',')) codes.push(expression(0))
    return codes
  }
  const table = (): Code => {
    if (takeIf('}')) return single('lua.table([])')
    const codes = list()
    takeIf(',')
    expect('}')
    return single(`lua.table(${listOf(codes)})`)
  }
  const called = (): readonly Code[] => {
    if (takeIf(')')) return []
    const codes = list()
    expect(')')
    return codes
  }
  const prefixed = (): Code => {
    if (takeIf('(')) {
      const inner = expression(0)
      expect(')')
      return suffixed(single(`(${one(inner)})`))
    }
    const first = name()
    const whole = is('.') ? `${first}.${(tokens[at + 1] as Token).text}` : first
    if (library.has(whole)) {
      if (whole !== first) at += 2
      expect('(')
      const args = called()
      const isMany = whole === 'string.match'
      return suffixed({ text: `lua['${whole}'](...${listOf(args)})`, isMany })
    }
    return suffixed(single(own(first)))
  }
  const suffixed = (start: Code): Code => {
    let code = start
    for (;;) {
      if (takeIf('[')) {
        const key = one(expression(0))
        expect(']')
        code = single(`lua.get(${one(code)}, ${key})`)
      } else if (takeIf('(')) code = { text: `${one(code)}(...${listOf(called())})`, isMany: true }
      else return code
    }
  }
  const constants: Readonly<Record<string, string>> = { nil: 'undefined', true: 'true', false: 'false' }
  const constant = (): Code | undefined => {
    const { kind, text } = look()
    const code = kind === 'number' ? text : kind === 'string' ? JSON.stringify(text) : constants[text]
    if (code === undefined) return undefined
    at += 1
    return single(code)
  }
  const unary: Readonly<Record<string, string>> = {
    not: '!lua.isTrue',
    '#': 'lua.lengthOf',
    '-': '-lua.number',
  }
  const operand = (): Code => {
    const known = constant()
    if (known !== undefined) return known
    if (takeIf('{')) return table()
    const sign = unary[look().text]
    if (sign === undefined) return prefixed()
    at += 1
    return single(`${sign}(${one(expression(unaryLevel))})`)
  }
  const expression = (min: number): Code => {
    let left = operand()
    for (;;) {
      const [level, code] = (look().kind === 'string' ? undefined : binary[look().text]) ?? []
      if (level === undefined || code === undefined || level < min) return left
      take()
      left = single(code(one(left), one(expression(level + 1))))
    }
  }

  const block = (): string =>
    inScope(() => {
      const lines: string[] = []
      while (!blockEnds.has(look().text) || look().kind === 'string') lines.push(statement())
      return lines.join('\n')
    })
  const functionBody = (): string =>
    inScope(() => {
      expect('(')
      const names: string[] = []
      while (!takeIf(')')) {
        names.push(declare(name()))
        takeIf(',')
      }
      const body = block()
      expect('end')
      return `(${names.join(', ')}) => {\n${body}\nreturn []\n}`
    })
  const local = (): string => {
    if (takeIf('function')) {
      const variable = declare(name())
      return `const ${variable} = ${functionBody()}`
    }
    const names = [name()]
    while (takeIf(',')) names.push(name())
    const values = takeIf('=') ? listOf(list()) : '[]'
    return `let [${names.map(declare).join(', ')}] = ${values}`
  }
  const ifThen = (): string => {
    const condition = one(expression(0))
    expect('then')
    let text = `if (lua.isTrue(${condition})) {\n${block()}\n}`
    if (takeIf('elseif')) text += ` else ${ifThen()}`
    else {
      if (takeIf('else')) text += ` else {\n${block()}\n}`
      expect('end')
    }
    return text
  }
  const loopBody = (names: readonly string[], head: (variables: string) => string): string =>
    inScope(() => {
      const variables = names.map(declare).join(', ')
      expect('do')
      const body = block()
      expect('end')
      return `for (${head(variables)}) {\n${body}\n}`
    })
  const loop = (): string => {
    const names = [name()]
    if (takeIf(',')) names.push(name())
    if (takeIf('=')) {
      const [from, to, by] = list().map(one)
      return loopBody(names, (i) => `let ${i} = ${from}; ${i} <= ${to}; ${i} += ${by ?? 1}`)
    }
    expect('in')
    if (name() !== 'ipairs') throw new Error('a loop is over ipairs')
    expect('(')
    const values = one(expression(0))
    expect(')')
    return loopBody(names, (variables) => `const [${variables}] of lua.ipairs(${values})`)
  }
  const assignmentOrCall = (): string => {
    const targets = [prefixed()]
    while (takeIf(',')) targets.push(prefixed())
    if (!takeIf('=')) return `${targets.map(({ text }) => text).join()};`
    const values = listOf(list())
    const texts = targets.map(({ text }, i) => {
      const indexed = /^lua\.get\((.*)\)$/s.exec(text)
      return indexed === null ? `${text} = values[${i}]` : `lua.set(${indexed[1]}, values[${i}])`
    })
    return `{ const values = ${values}; ${texts.join('; ')} }`
  }
  const statement = (): string => {
    if (takeIf('local')) return local()
    if (takeIf('if')) return ifThen()
    if (takeIf('for')) return loop()
    if (takeIf('return')) {
      const isBare = blockEnds.has(look().text) && look().kind !== 'string'
      return `return ${isBare ? '[]' : listOf(list())}`
    }
    return assignmentOrCall()
  }
  const text = block()
  if (look().kind !== 'end') throw new Error(`the script goes on with ${look().text}`)
  return text
}

const isTrue = (value: LuaValue): boolean => value !== undefined && value !== false

const tableOf = (value: LuaValue): LuaTable => {
  if (value instanceof LuaTable) return value
  throw new Error(`attempt to index ${String(value)}`)
}

const number = (value: LuaValue): number => {
  const result = typeof value === 'string' ? Number(value) : value
  if (typeof result !== 'number' || Number.isNaN(result)) throw new Error('attempt to perform arithmetic')
  return result
}

/** `%.14g`, as Lua and Redis write a number. */
export const textOf = (value: LuaValue): string => {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') throw new Error(`no text: ${String(value)}`)
  return Number.isInteger(value) && Math.abs(value) < 1e14
    ? String(value)
    : String(Number(value.toPrecision(14)))
}

/** Only the patterns of the scripts: their character classes mean the same in JavaScript. */
const patterns = new Map<string, RegExp>()
const patternOf = (text: string): RegExp => {
  const known = patterns.get(text) ?? new RegExp(text.replace(/%([wd])/g, '\\$1'))
  patterns.set(text, known)
  return known
}

const toJson = (value: LuaValue): unknown => (value instanceof LuaTable ? value.list.map(toJson) : value)
const fromJson = (value: unknown): LuaValue =>
  Array.isArray(value) ? new LuaTable(value.map(fromJson)) : (value as LuaValue)

const createLibrary = (call: (...args: readonly LuaValue[]) => LuaValue) => ({
  isTrue,
  isLess: (one: LuaValue, other: LuaValue): boolean => {
    if (typeof one !== typeof other || one === undefined || other === undefined)
      throw new Error('attempt to compare')
    return one < other
  },
  joined: (one: LuaValue, other: LuaValue): string => textOf(one) + textOf(other),
  number,
  table: (list: LuaValue[]): LuaTable => new LuaTable(list),
  lengthOf: (value: LuaValue): number =>
    typeof value === 'string' ? value.length : tableOf(value).list.length,
  get: (value: LuaValue, key: LuaValue): LuaValue =>
    typeof key === 'number' ? tableOf(value).list[key - 1] : tableOf(value).members?.get(key),
  set: (target: LuaValue, key: LuaValue, value: LuaValue): void => {
    const table = tableOf(target)
    if (typeof key === 'number') table.list[key - 1] = value
    else {
      table.members ??= new Map()
      table.members.set(key, value)
    }
  },
  ipairs: (value: LuaValue): Iterable<readonly [number, LuaValue]> =>
    tableOf(value).list.map((item, i) => [i + 1, item] as const),
  tonumber: (value: LuaValue): LuaValue => {
    if (typeof value === 'number') return value
    if (typeof value !== 'string' || value.trim() === '' || Number.isNaN(Number(value))) return undefined
    return Number(value)
  },
  'math.floor': (value: LuaValue): number => Math.floor(number(value)),
  'math.max': (...values: readonly LuaValue[]): number => Math.max(...values.map(number)),
  'string.format': (format: LuaValue, value: LuaValue): string => {
    if (format !== '%.0f') throw new Error(`a format that is not understood here: ${String(format)}`)
    return number(value).toFixed(0)
  },
  'string.match': (text: LuaValue, pattern: LuaValue): readonly LuaValue[] =>
    patternOf(textOf(pattern)).exec(textOf(text))?.slice(1) ?? [],
  'string.sub': (text: LuaValue, from: LuaValue, to: LuaValue): string =>
    textOf(text).slice(number(from) - 1, number(to)),
  'redis.call': call,
  'cjson.encode': (value: LuaValue): string => JSON.stringify(toJson(value)),
  'cjson.decode': (text: LuaValue): LuaValue => fromJson(JSON.parse(textOf(text))),
})

export type LuaScript = (
  call: (...args: readonly LuaValue[]) => LuaValue,
  keys: readonly string[],
  argv: readonly string[],
) => LuaValue

export const compileLua = (source: string): LuaScript => {
  // The text is a script of src/cluster; nothing else gets here.
  const run = new Function('lua', '_KEYS', '_ARGV', compile(source)) as (
    library: ReturnType<typeof createLibrary>,
    keys: LuaTable,
    argv: LuaTable,
  ) => readonly LuaValue[] | undefined
  return (call, keys, argv) => run(createLibrary(call), new LuaTable([...keys]), new LuaTable([...argv]))?.[0]
}
