# Approves the install plans of the operators that were asked for, and of nobody else. Ending well means that they are approved, not that
# the operators are upgraded.
#
# APPROVEALL is "true" if all operators are asked for; otherwise those in INCLUDELIST are. Those in EXCLUDELIST never are. Both lists have one
# "name,namespace" of a Subscription on each line. WAITTIME is for how many seconds is tried again what did not come off.
set -u

# What may come of looking after a Subscription: it is seen to, it has to be tried again, or trying again does not help.
readonly SEEN_TO=0 AGAIN=1 HOPELESS=2

# Whether a list has exactly this line.
has() {
  [[ $'\n'"$1"$'\n' == *$'\n'"$2"$'\n'* ]]
}

# Whether the Subscription "name,namespace" is asked for.
is_asked_for() {
  if has "$EXCLUDELIST" "$1"; then return 1; fi
  [[ $APPROVEALL == true ]] || has "$INCLUDELIST" "$1"
}

# Whether all Subscriptions of a namespace are asked for, those too that nobody knows of yet.
are_all_asked_for() {
  [[ $APPROVEALL == true && $'\n'"$EXCLUDELIST"$'\n' != *",$1"$'\n'* ]]
}

# All Subscriptions, one on each line: name|namespace|approval|version to move to|version there|install plan
list_subscriptions() {
  oc get subscriptions.operators.coreos.com --all-namespaces --output 'jsonpath={range .items[*]}{.metadata.name}|{.metadata.namespace}|{.spec.installPlanApproval}|{.status.currentCSV}|{.status.installedCSV}|{.status.installPlanRef.name}{"\n"}{end}'
}

# What an install plan is: resource version|approved|versions that it brings
show_plan() {
  oc get installplans.operators.coreos.com "$1" --namespace "$2" --output 'jsonpath={.metadata.resourceVersion}|{.spec.approved}|{.spec.clusterServiceVersionNames[*]}'
}

# Whether a plan of a namespace may be approved that brings these versions: all have to be asked for. What is not is said.
judge() {
  local plan=$1 namespace=$2 versions=$3 version name home current installed known
  for version in $versions; do
    known=no
    while IFS='|' read -r name home _ current installed _; do
      if [[ $home != "$namespace" ]] || [[ $current != "$version" && $installed != "$version" ]]; then continue; fi
      known=yes
      if ! is_asked_for "$name,$home"; then
        echo "$namespace/$plan is not approved: it also brings $version of $home/$name, which was not asked for"
        return "$HOPELESS"
      fi
    done <<<"$subscriptions"
    # Subscriptions are written one after the other: whose this is may still show.
    if [[ $known == no ]] && ! are_all_asked_for "$namespace"; then
      echo "$namespace/$plan is not approved: it also brings $version, which no Subscription of the namespace has"
      return "$AGAIN"
    fi
  done
}

# Approves the plan of one Subscription, if it waits and may be.
look_after() {
  local name=$1 namespace=$2 current=$3 plan=$4 shown resource_version approved versions
  if ! shown=$(show_plan "$plan" "$namespace"); then return "$AGAIN"; fi
  IFS='|' read -r resource_version approved versions <<<"$shown"
  if [[ $approved == true ]]; then
    echo "$namespace/$name: $plan is approved already"
    return "$SEEN_TO"
  fi
  if [[ " $versions " != *" $current "* ]]; then
    echo "$namespace/$name: $plan does not bring $current"
    return "$AGAIN"
  fi
  judge "$plan" "$namespace" "$versions" || return
  # The resource version makes sure that the plan is still the one that was judged.
  oc patch installplans.operators.coreos.com "$plan" --namespace "$namespace" --type merge \
    --patch "{\"metadata\":{\"resourceVersion\":\"$resource_version\"},\"spec\":{\"approved\":true}}" || return "$AGAIN"
  echo "$namespace/$name: approved $plan ($versions)"
}

# What Subscriptions were to move to when they were first seen, and what came of each.
declare -A target=() outcome=()

# Looks after all that were asked for. Fails if something has to be tried again.
look_after_all() {
  local name namespace approval current installed plan key left=no
  if ! subscriptions=$(list_subscriptions); then return 1; fi
  while IFS='|' read -r name namespace approval current installed plan; do
    key=$name,$namespace
    if [[ -z $name || $approval != Manual ]] || ! is_asked_for "$key"; then continue; fi
    target[$key]=${target[$key]-$current}
    if [[ -n ${outcome[$key]-} ]]; then continue; fi
    if [[ -z $plan || $current == "$installed" ]]; then
      echo "$namespace/$name: nothing to approve"
      outcome[$key]=$SEEN_TO
    elif [[ $current != "${target[$key]}" ]]; then
      echo "$namespace/$name: ${target[$key]} is not offered any more, but $current is"
      outcome[$key]=$HOPELESS
    else
      look_after "$name" "$namespace" "$current" "$plan"
      case $? in
        "$AGAIN") left=yes ;;
        "$HOPELESS") outcome[$key]=$HOPELESS ;;
        *) outcome[$key]=$SEEN_TO ;;
      esac
    fi
  done <<<"$subscriptions"
  [[ $left == no ]]
}

if kinds=$(oc api-resources --api-group operators.coreos.com --output name) &&
  ! has "$kinds" subscriptions.operators.coreos.com; then
  echo "there is no Operator Lifecycle Manager on this cluster: nothing to approve"
  exit 0
fi
subscriptions=
until look_after_all; do
  if ((SECONDS >= WAITTIME)); then
    echo "not everything could be approved within $WAITTIME s" >&2
    exit 1
  fi
  sleep 5
done
for key in "${!outcome[@]}"; do
  if [[ ${outcome[$key]} == "$HOPELESS" ]]; then
    echo "not everything was approved" >&2
    exit 1
  fi
done
echo "everything that was asked for is approved; whether the operators were upgraded is not looked at"
