import { api } from "../api/client";
import type { Approval, List } from "../api/types";
import { useLive, useTitle } from "../hooks";
import { t } from "../i18n";
import { ApprovalCard } from "../ui/approval";
import { Empty, Loading, PageHead } from "../ui/parts";

export default function Approvals() {
  useTitle(t("page_approvals"));
  const list = useLive((signal) => api.get<List<Approval>>("/api/approvals", {}, signal), ["approval"], []);
  return (
    <div class="page narrow">
      <PageHead title={t("page_approvals")} note={t("approvalsNote")} />
      <Loading of={list}>
        {(page) => page.data.length === 0
          ? <Empty icon="approvals" title={t("approvalsEmpty")}>{t("approvalsEmptyHint")}</Empty>
          : <div class="stack">{page.data.map((one) => <ApprovalCard key={one.id} id={one.id} showPlace onAnswered={list.reload} />)}</div>}
      </Loading>
    </div>
  );
}
