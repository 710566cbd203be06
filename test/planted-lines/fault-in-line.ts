import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** A line as it stands in one of two trees. */
type Place = { readonly file: string; readonly line: number }

/** A change of a part of one line, which both trees have word for word. */
export type FaultInLine = {
  readonly area: string
  readonly text: string
  /** Counted from the first character of the text. */
  readonly start: number
  readonly end: number
  readonly becomes: string
  readonly before: Place
  readonly after: Place
}

/** How many faults each area gets, and how its files begin. */
const areas: Record<string, { readonly faults: number; readonly start: string }> = {
  'the cache': { faults: 20, start: 'src/cache/' },
  'a write': { faults: 20, start: 'src/exchange/write' },
  WordPress: { faults: 8, start: 'src/wordpress/' },
  OpenAPI: { faults: 6, start: 'src/openapi/' },
  GraphQL: { faults: 6, start: 'src/graphql/' },
}

const opposites: Record<string, string> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
}

const ofOperator = (node: ts.BinaryExpression, source: ts.SourceFile): string | undefined => {
  const operator = node.operatorToken.getText(source)
  const joinsTexts = operator === '+' && /['`]/.test(node.getText(source))
  const opposite = joinsTexts ? undefined : opposites[operator]
  return opposite && `${node.left.getText(source)} ${opposite} ${node.right.getText(source)}`
}

const isCondition = (node: ts.Node): boolean =>
  (ts.isIfStatement(node.parent) && node.parent.expression === node) ||
  (ts.isConditionalExpression(node.parent) && node.parent.condition === node)

/** What the expression is replaced with; undefined: it is left. */
const replacementOf = (node: ts.Node, source: ts.SourceFile): string | undefined => {
  const text = node.getText(source)
  if (ts.isBinaryExpression(node)) return ofOperator(node, source)
  if (isCondition(node)) return `!(${text})`
  if (ts.isExpressionStatement(node.parent)) return /^(await )?[\w.?]+\(/.test(text) ? 'undefined' : undefined
  if (ts.isLiteralTypeNode(node.parent)) return undefined
  if (ts.isNumericLiteral(node)) return ts.isExpression(node.parent) ? `${text} + 1` : undefined
  if (node.kind === ts.SyntaxKind.TrueKeyword) return 'false'
  return node.kind === ts.SyntaxKind.FalseKeyword ? 'true' : undefined
}

type Candidate = Omit<FaultInLine, 'area'>
type Lines = Map<string, Place | 'several'>

const read = (folder: string): { readonly texts: Map<string, string>; readonly lines: Lines } => {
  const texts = new Map<string, string>()
  const lines: Lines = new Map()
  for (const name of readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (!name.endsWith('.ts')) continue
    const file = `src/${name}`
    texts.set(file, readFileSync(join(folder, file), 'utf8'))
    for (const [line, text] of (texts.get(file) ?? '').split('\n').entries())
      lines.set(text.trim(), lines.has(text.trim()) ? 'several' : { file, line })
  }
  return { texts, lines }
}

/** All faults in lines that stand once in each of the two trees, in an order that only the seed decides. */
const candidates = (beforeFolder: string, afterFolder: string, seed: string): Candidate[] => {
  const before = read(beforeFolder)
  const after = read(afterFolder)
  const found: Candidate[] = []
  for (const [file, text] of after.texts) {
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      const { line, character } = source.getLineAndCharacterOfPosition(node.getStart(source))
      const whole = text.split('\n')[line] ?? ''
      const there = before.lines.get(whole.trim())
      const becomes = node.getText(source).includes('\n') ? undefined : replacementOf(node, source)
      if (becomes && there && there !== 'several' && after.lines.get(whole.trim()) !== 'several') {
        const start = character - (whole.length - whole.trimStart().length)
        const end = start + node.getText(source).length
        found.push({ text: whole.trim(), start, end, becomes, before: there, after: { file, line } })
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  const rankOf = (one: Candidate): string =>
    createHash('sha256').update(`${seed} ${one.text} ${one.start} ${one.becomes}`).digest('hex')
  return found.toSorted((a, b) => (rankOf(a) < rankOf(b) ? -1 : 1))
}

/** The first of each area, of a line one. */
export const chooseFaults = (before: string, after: string, seed: string): FaultInLine[] => {
  const all = candidates(before, after, seed)
  const first = all.filter((one) => one === all.find(({ text }) => text === one.text))
  return Object.entries(areas).flatMap(([area, { faults, start }]) =>
    first
      .filter(({ after: { file } }) => file.startsWith(start))
      .slice(0, faults)
      .map((one) => ({ ...one, area })),
  )
}
