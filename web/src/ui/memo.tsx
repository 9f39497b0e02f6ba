import { Component, type FunctionComponent } from "preact";

/** Draw a part again only when one of its properties is another one. (`preact/compat` has the same, and slows every element.) */
export function memo<P extends object>(Body: FunctionComponent<P>) {
  return class extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys({ ...before, ...after }).some((name) => before[name] !== after[name]);
    }
    render() {
      return <Body {...(this.props as P)} />;
    }
  };
}
